#include "engine/utf8.hpp"

#include <cstddef>

namespace kvasir::engine {

bool is_valid_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || length > text.size() - i) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    if (length > 2) {
      const unsigned char second = byte(i + 1);
      const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
      const bool outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
      if (overlong || outside) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace kvasir::engine
