// Internal to the artifact layer. The metadata keys of a file's architecture ("<architecture>.<suffix>"), read within limits.
// Thread rule: immutable; any thread. The file outlives the object.
// Errors: bad_input naming file, key and value, and what would be valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string_view architecture) : file_(&file), architecture_(architecture) {}

  const GgufFile& file() const { return *file_; }
  std::string_view architecture() const { return architecture_; }
  std::string key(std::string_view suffix) const;
  bool has(std::string_view suffix) const { return file_->find(key(suffix)) != nullptr; }

  // "<file>: metadata key '<architecture>.<suffix>' <what>".
  Error error(ErrorCode code, std::string_view suffix, std::string_view what) const;
  Error bad(std::string_view suffix, std::string_view what) const { return error(ErrorCode::bad_input, suffix, what); }

  Result<std::uint32_t> uint_between(std::string_view suffix, std::uint32_t least, std::uint32_t most) const;
  // A positive finite number; `fallback` where the key is absent.
  Result<double> positive(std::string_view suffix, double fallback) const;
  // One value a layer, from a scalar or an array with one entry a layer.
  Result<std::vector<std::uint32_t>> by_layer(std::string_view suffix, std::uint32_t layers, std::uint32_t most) const;

 private:
  const GgufFile* file_;
  std::string_view architecture_;
};

}  // namespace kvasir::artifact
