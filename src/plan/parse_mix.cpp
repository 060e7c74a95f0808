// Mixes written as text: histograms and percentiles.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "plan/capacity_plan.hpp"
#include "plan/length_mix.hpp"

namespace kvasir::plan {
namespace {

constexpr std::uint64_t kPercentileSequences = 10'000;
constexpr std::size_t kShownEntry = 60;
constexpr std::string_view kForms = "LENGTH:WEIGHT, PROMPT+OUTPUT:WEIGHT, or percentiles as p50=800,p99=8000,max=16000";

struct Entry {
  std::string_view text;
  std::size_t number = 0;  // from 1

  Error wrong(std::string_view message) const {
    return {ErrorCode::bad_input, fmt::format("entry {} '{}': {}", number, text.substr(0, kShownEntry), message)};
  }
};

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (text.empty() || status != std::errc{} || rest != end) return std::nullopt;
  return value;
}

Result<std::uint64_t> parse_length(std::string_view text, std::string_view what, const Entry& entry) {
  const std::optional<std::uint64_t> value = parse_all<std::uint64_t>(text);
  if (value && *value >= 1 && *value <= kMaxLength) return *value;
  return entry.wrong(
      fmt::format("the {} is '{}', valid: a whole number from 1 to {}", what, text.substr(0, kShownEntry), kMaxLength));
}

Result<SequenceLength> parse_bar(const Entry& entry) {
  const std::size_t colon = entry.text.find(':'), plus = entry.text.substr(0, colon).find('+');
  if (colon == std::string_view::npos) return entry.wrong(fmt::format("valid: {}", kForms));
  SequenceLength out;
  if (plus == std::string_view::npos) {
    KV_ASSIGN(out.prompt, parse_length(entry.text.substr(0, colon), "length", entry));
  } else {
    KV_ASSIGN(out.prompt, parse_length(entry.text.substr(0, plus), "prompt", entry));
    KV_ASSIGN(out.output, parse_length(entry.text.substr(plus + 1, colon - plus - 1), "output", entry));
    if (out.length() > kMaxLength)
      return entry.wrong(fmt::format("{} tokens in all, valid: at most {}", out.length(), kMaxLength));
  }
  const std::string_view weight = entry.text.substr(colon + 1);
  const std::optional<double> parsed = parse_all<double>(weight);
  if (!parsed || !(*parsed >= 0 && *parsed <= kMaxMixWeight)) {
    return entry.wrong(fmt::format("the weight is '{}', valid: a number from 0 to {:g}", weight.substr(0, kShownEntry),
                                   kMaxMixWeight));
  }
  out.weight = *parsed;
  return out;
}

Result<LengthMix> parse_histogram(const std::vector<Entry>& entries) {
  LengthMix mix;
  mix.lengths.reserve(entries.size());
  for (const Entry& entry : entries) {
    KV_ASSIGN(const SequenceLength one, parse_bar(entry));
    const bool apart = one.output > 0;
    if (mix.lengths.empty()) mix.apart = apart;
    if (apart != mix.apart)
      return entry.wrong("prompt and output are told apart in some entries only; valid: in all or in none");
    mix.lengths.push_back(one);
  }
  const double sum = mix.weight();
  if (sum > 0 && sum <= kMaxMixWeight) return mix;
  return Error{ErrorCode::bad_input,
               fmt::format("the weights sum to {:g}, valid: more than 0, at most {:g}", sum, kMaxMixWeight)};
}

struct Point {
  double share = 0;  // in [0, 1]
  std::uint64_t length = 0;
};

Result<Point> parse_point(const Entry& entry) {
  const std::size_t equals = entry.text.find('=');
  if (equals == std::string_view::npos) return entry.wrong(fmt::format("valid: {}", kForms));
  const std::string_view key = entry.text.substr(0, equals);
  Point out;
  KV_ASSIGN(out.length, parse_length(entry.text.substr(equals + 1), "length", entry));
  if (key == "min") return out;
  out.share = 1;
  if (key == "max") return out;
  const std::optional<double> percent = key.starts_with('p') ? parse_all<double>(key.substr(1)) : std::nullopt;
  if (!percent || !(*percent > 0 && *percent < 100)) {
    return entry.wrong("valid: min, max, and percentiles between p0 and p100, as p50 or p99.9");
  }
  out.share = *percent / 100;
  return out;
}

// The length below which a share of the sequences lies.
double length_at(const std::vector<Point>& points, double share) {
  std::size_t above = 1;
  while (above + 1 < points.size() && points[above].share < share) ++above;
  const Point &low = points[above - 1], &high = points[above];
  const double way = (share - low.share) / (high.share - low.share);
  return static_cast<double>(low.length) + way * static_cast<double>(high.length - low.length);
}

Result<LengthMix> parse_percentiles(const std::vector<Entry>& entries) {
  std::vector<Point> points;
  for (const Entry& entry : entries) {
    KV_ASSIGN(const Point point, parse_point(entry));
    if (points.empty() && point.share > 0) points.push_back({0, 1});
    if (!points.empty() && points.back().share >= point.share)
      return entry.wrong("valid: percentiles in ascending order, each once");
    if (!points.empty() && points.back().length > point.length) {
      return entry.wrong(fmt::format("{} is below the {} before it; valid: lengths that do not decrease", point.length,
                                     points.back().length));
    }
    points.push_back(point);
  }
  if (points.back().share != 1)
    return Error{ErrorCode::bad_input, "the percentiles have no max; valid: a last entry as max=16000"};
  LengthMix mix;
  mix.lengths.reserve(kPercentileSequences);
  for (std::uint64_t i = 0; i < kPercentileSequences; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(kPercentileSequences);
    mix.lengths.push_back({static_cast<std::uint64_t>(std::ceil(length_at(points, share))), 0, 1});
  }
  return mix;
}

}  // namespace

Result<LengthMix> parse_mix(std::string_view text) {
  const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1;
  if (count > kMaxMixLengths) {
    return Error{ErrorCode::bad_input, fmt::format("{} entries, valid: at most {}", count, kMaxMixLengths)};
  }
  std::vector<Entry> entries;
  entries.reserve(count);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    entries.push_back({text.substr(begin, end - begin), entries.size() + 1});
    begin = end + 1;
  }
  const bool percentiles = entries.front().text.find('=') != std::string_view::npos;
  return percentiles ? parse_percentiles(entries) : parse_histogram(entries);
}

}  // namespace kvasir::plan
