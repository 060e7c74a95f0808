#include "report/numbers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kvasir::report {
namespace {

// Three significant digits of a value in [0, 1000).
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string format_counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " us";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  return fmt::format("{} min {:02} s", format_count(whole / 60), whole % 60);
}

std::string format_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) return "-";
  if (per_second < 999.5) return three_digits(per_second);
  return format_count(static_cast<std::uint64_t>(std::llround(per_second)));
}

}  // namespace kvasir::report
