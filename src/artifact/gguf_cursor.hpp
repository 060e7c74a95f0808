// Internal to the artifact layer. Reads little-endian values from a file's bytes, in order, and never past their end.
// Thread rule: one thread.
// Invariant: position() <= size. A failed read moves nothing.
// Errors: bad_input naming the file, where in its header, the byte and how many bytes were needed and left.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace kvasir::artifact {

static_assert(std::endian::native == std::endian::little, "GGUF values are copied as they lie in the file");

// Text from a file as a message may show it: control and non-ASCII bytes escaped, cut after 80 bytes.
std::string printable(std::string_view text);

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  // What is being read, for messages: "metadata key 'general.name'".
  void set_context(std::string context) { context_ = std::move(context); }

  template <class T>
  Result<T> scalar() {
    if (remaining() < sizeof(T)) return truncated(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Result<std::span<const std::byte>> take(std::uint64_t count);

  // A 64-bit length and that many bytes.
  Result<std::string_view> string();

  // "<file>: <context>: <what>".
  Error error(ErrorCode code, std::string_view what) const;
  Error bad(std::string_view what) const { return error(ErrorCode::bad_input, what); }

 private:
  Error truncated(std::uint64_t needed) const;

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
  std::string file_;
  std::string context_ = "header";
};

}  // namespace kvasir::artifact
