#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>

namespace kvasir {
namespace {

struct UnitName {
  std::string_view name;
  double bytes;
};

constexpr double kKi = 1024.0;
constexpr std::array kUnits = {
    UnitName{"", 1},          UnitName{"b", 1},
    UnitName{"k", kKi},       UnitName{"ki", kKi},       UnitName{"kib", kKi},       UnitName{"kb", 1e3},
    UnitName{"m", kKi * kKi}, UnitName{"mi", kKi * kKi}, UnitName{"mib", kKi * kKi}, UnitName{"mb", 1e6},
    UnitName{"g", kKi * kKi * kKi},       UnitName{"gi", kKi * kKi * kKi},
    UnitName{"gib", kKi * kKi * kKi},     UnitName{"gb", 1e9},
    UnitName{"t", kKi * kKi * kKi * kKi}, UnitName{"ti", kKi * kKi * kKi * kKi},
    UnitName{"tib", kKi * kKi * kKi * kKi}, UnitName{"tb", 1e12},
};

Error bad_size(std::string_view text) {
  return Error{ErrorCode::bad_input,
               fmt::format("'{}' is not a size; valid forms are 1073741824, 512M, 512MiB, 1.5G, 2GB", text)};
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < names.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, names[unit]);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [rest, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{} || number < 0) return bad_size(text);
  std::string unit;
  for (; rest != end; ++rest) {
    if (*rest != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*rest)));
  }
  for (const UnitName& candidate : kUnits) {
    if (candidate.name != unit) continue;
    const double bytes = number * candidate.bytes;
    if (!(bytes < 9.2e18)) return bad_size(text);
    return static_cast<std::uint64_t>(bytes);
  }
  return bad_size(text);
}

Result<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return Error{ErrorCode::bad_input, fmt::format("{} x {} is more than 64 bits hold", a, b)};
  return product;
}

Result<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return Error{ErrorCode::bad_input, fmt::format("{} + {} is more than 64 bits hold", a, b)};
  return sum;
}

}  // namespace kvasir
