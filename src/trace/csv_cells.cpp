#include "trace/csv_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kvasir::trace {

Result<std::vector<std::string_view>> split_cells(std::string_view line, std::string_view header, const Place& place) {
  const auto columns = [](std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1;
  };
  if (columns(line) != columns(header))
    return bad_row(place, fmt::format("{} columns; valid: the {} of {}", columns(line), columns(header), header));
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return cells;
}

Result<std::uint32_t> parse_tokens(std::string_view text, std::string_view key, const Place& place) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc{} && rest == end && value >= 1 && value <= kMaxTokens) return value;
  return bad_value(place, key, fmt::format("'{}'", text), fmt::format("a whole number from 1 to {}", kMaxTokens));
}

}  // namespace kvasir::trace
