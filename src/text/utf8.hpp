// UTF-8, strictly: no surrogates, no overlong forms, nothing above U+10FFFF. Pure functions, any thread.
// Source: the Unicode standard, section 3.9, tables 3-7 and 3-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::text {

enum class Utf8Kind : std::uint8_t { character, ill_formed, cut_off };

// What starts at a position: a character of `length` bytes, the longest ill-formed part (1 to 3 bytes, one U+FFFD), or
// the beginning of a character at the end of the text.
struct Utf8Step {
  Utf8Kind kind;
  std::size_t length;
};

// REQUIRES: at < text.size().
Utf8Step utf8_step(std::string_view text, std::size_t at);

// Offset of the first byte that is not part of a character.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// The code point of the character at `at`. REQUIRES: one starts there.
char32_t utf8_code_point(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code_point);

// White space as Unicode's White_Space property and Python's str.isspace() have it, taken together.
bool is_white_space(char32_t code_point);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace kvasir::text
