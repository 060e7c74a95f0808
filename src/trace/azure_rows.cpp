// The Azure form: CSV without quotes.
#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "trace/csv_cells.hpp"
#include "trace/row_reader.hpp"

namespace kvasir::trace {
namespace {

constexpr std::uint64_t kTicksPerSecond = 10'000'000;  // the trace's digits: 100 ns

template <class T>
bool parse_digits(std::string_view text, T& value) {
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && rest == text.data() + text.size() && text.front() != '-';
}

// "2023-11-16 18:17:03.9799600" in ticks since 1970, or nothing. The fraction may have one to seven digits or be
// absent.
std::optional<std::int64_t> parse_ticks(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':')
    return {};
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!parse_digits(text.substr(0, 4), year) || !parse_digits(text.substr(5, 2), month) ||
      !parse_digits(text.substr(8, 2), day) || !parse_digits(text.substr(11, 2), hour) ||
      !parse_digits(text.substr(14, 2), minute) || !parse_digits(text.substr(17, 2), second)) {
    return {};
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  std::string fraction = "0000000";
  if (text.size() > 19) {
    const std::string_view digits = text.substr(20);
    if (text[19] != '.' || digits.empty() || digits.size() > fraction.size()) return {};
    fraction.replace(0, digits.size(), digits);
  }
  std::uint32_t ticks = 0;
  if (!parse_digits(std::string_view(fraction), ticks)) return {};
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
  return seconds * static_cast<std::int64_t>(kTicksPerSecond) + ticks;
}

class AzureRows final : public RowReader {
 public:
  Result<std::optional<TraceRequest>> read(std::string_view line, const Place& place) override {
    if (!has_header_) {
      if (line != kAzureHeader)
        return bad_row(place, fmt::format("the header is '{}'; valid: {}", line.substr(0, 80), kAzureHeader));
      has_header_ = true;
      return std::optional<TraceRequest>();
    }
    KV_ASSIGN(const auto cells, split_cells(line, kAzureHeader, place));
    const std::optional<std::int64_t> ticks = parse_ticks(cells[0]);
    if (!ticks)
      return bad_value(place, "TIMESTAMP", fmt::format("'{}'", cells[0]), "a time as 2023-11-16 18:17:03.9799600");
    if (!first_ticks_) first_ticks_ = ticks;
    if (*ticks < *first_ticks_)
      return bad_value(place, "TIMESTAMP", fmt::format("'{}'", cells[0]), "arrivals in order");
    TraceRequest request;
    request.arrival_s = static_cast<double>(*ticks - *first_ticks_) / static_cast<double>(kTicksPerSecond);
    KV_ASSIGN(request.input_tokens, parse_tokens(cells[1], "ContextTokens", place));
    KV_ASSIGN(request.output_tokens, parse_tokens(cells[2], "GeneratedTokens", place));
    return std::optional(std::move(request));
  }

  std::uint32_t block_tokens() const override { return 0; }

 private:
  bool has_header_ = false;
  std::optional<std::int64_t> first_ticks_;
};

}  // namespace

std::unique_ptr<RowReader> azure_rows() { return std::make_unique<AzureRows>(); }

}  // namespace kvasir::trace
