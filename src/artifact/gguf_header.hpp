// Internal to the artifact layer. A GGUF file's header, read and checked; gguf.hpp gives access to it.
// Thread rule: a value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Views point into the file's bytes.
struct GgufHeader {
  std::uint32_t version = 0;
  std::vector<std::pair<std::string_view, GgufValue>> metadata;       // file order
  std::vector<GgufTensor> tensors;                                    // file order
  std::unordered_map<std::string_view, std::size_t> metadata_by_key;  // index into metadata
  std::unordered_map<std::string_view, std::size_t> tensors_by_name;  // index into tensors
};

// Errors: as GgufFile::parse.
Result<GgufHeader> read_gguf_header(std::span<const std::byte> file, const std::string& name);

// How messages call a value's kind: "an unsigned integer", "an array of strings".
std::string_view kind_name(const GgufValue& value);

}  // namespace kvasir::artifact
