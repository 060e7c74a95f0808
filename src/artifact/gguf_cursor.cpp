#include "artifact/gguf_cursor.hpp"

#include <fmt/format.h>

namespace kvasir::artifact {

std::string printable(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string shown;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      shown += c;
    else
      shown += fmt::format("\\x{:02x}", byte);
  }
  if (text.size() > kShown) shown += "...";
  return shown;
}

Error GgufCursor::error(ErrorCode code, std::string_view what) const {
  return Error{code, fmt::format("{}: {}: {}", file_, context_, what)};
}

Error GgufCursor::truncated(std::uint64_t needed) const {
  return bad(fmt::format("needs {} bytes at byte {}, but the file has only {} more; it is truncated or its header lies",
                         needed, position_, remaining()));
}

Result<std::span<const std::byte>> GgufCursor::take(std::uint64_t count) {
  if (remaining() < count) return truncated(count);
  const auto taken = bytes_.subspan(position_, count);
  position_ += count;
  return taken;
}

Result<std::string_view> GgufCursor::string() {
  const std::uint64_t start = position_;
  KV_ASSIGN(const auto length, scalar<std::uint64_t>());
  if (length > remaining()) {
    const Error error = bad(fmt::format("a string of {} bytes at byte {}, but the file has only {} more; it is "
                                        "truncated or its header lies",
                                        length, position_, remaining()));
    position_ = start;
    return error;
  }
  const auto text = bytes_.subspan(position_, length);
  position_ += length;
  return std::string_view(reinterpret_cast<const char*>(text.data()), text.size());
}

}  // namespace kvasir::artifact
