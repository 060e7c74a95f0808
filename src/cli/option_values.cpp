#include "cli/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/units.hpp"

namespace kvasir::cli {
namespace {

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  return status == std::errc{} && rest == end;
}

bool whole_in_range(std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  return parse_whole(text, value) && value >= low && value <= high;
}

std::vector<std::string_view> split_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        if (whole_in_range(text, low, high)) return std::string();
        return fmt::format("'{}' is not a whole number from {} to {}", text, low, high);
      },
      "", "whole_number");
}

CLI::Validator number(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        double value = 0;
        if (parse_whole(std::string_view(text), value) && value >= low && value <= high) return std::string();
        return fmt::format("'{}' is not a number from {} to {}", text, low, high);
      },
      "", "number");
}

CLI::Validator one_of(std::vector<std::string> words, std::string reason) {
  return CLI::Validator(
      [words = std::move(words), reason = std::move(reason)](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return fmt::format("'{}' is not offered; valid: {}{}", text, fmt::join(words, ", "), reason);
      },
      "", "one_of");
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? std::string("is empty; a text is wanted") : std::string(); }, ""};
}

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) {
        const Result<std::uint64_t> bytes = parse_bytes(text);
        if (!bytes.ok()) return bytes.error().message;
        if (*bytes == 0) return fmt::format("'{}' is no memory at all; valid forms are 64M, 512MiB, 1.5G, 2GB", text);
        text = fmt::format("{}", *bytes);
        return std::string();
      },
      "", "byte_size");
}

CLI::Validator number_list(std::uint64_t low, std::uint64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        for (const std::string_view part : split_commas(text)) {
          if (!whole_in_range(part, low, high)) {
            return fmt::format("'{}' in '{}' is not a whole number from {} to {}", part, text, low, high);
          }
        }
        return std::string();
      },
      "", "number_list");
}

std::vector<std::uint32_t> split_numbers(const std::string& text) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : split_commas(text)) {
    std::uint32_t value = 0;
    KV_CHECK(parse_whole(part, value), "a number list was checked before it is split");
    numbers.push_back(value);
  }
  return numbers;
}

}  // namespace kvasir::cli
