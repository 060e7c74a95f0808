// Sizes for people: "512MiB" <-> bytes. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kvasir {

// "737.3 KiB", "1.50 GiB": binary units, three or four significant digits, exact below 1 KiB.
std::string format_bytes(std::uint64_t bytes);

// Parses "1073741824", "512M", "512MiB", "1.5G", "2GB" (binary and decimal prefixes both accepted: K/Ki = 1024, KB = 1000).
// Errors: bad_input for an empty, negative, unknown-unit or over-2^63 size; the message shows valid forms.
Result<std::uint64_t> parse_bytes(std::string_view text);

// a * b and a + b that say so when they overflow 64 bits: sizes from outside are checked before use.
Result<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b);
Result<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b);

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace kvasir
