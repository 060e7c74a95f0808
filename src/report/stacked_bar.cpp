#include "report/stacked_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.hpp"
#include "report/svg_parts.hpp"
#include "report/svg_plot.hpp"

namespace kvasir::report {
namespace {

constexpr std::array<const char*, 6> kFillings = {"█", "▓", "▒", "░", "▚", "="};
constexpr double kHeight = 350, kBottom = 70, kLegendStep = 260;
constexpr std::size_t kLegendColumns = 3;
constexpr double kBarTop = 36, kBarHeight = 30, kBarPicture = 124;

std::uint64_t sum_of(const std::vector<Segment>& segments) {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments) {
    sum = segment.amount > std::numeric_limits<std::uint64_t>::max() - sum ? std::numeric_limits<std::uint64_t>::max() : sum + segment.amount;
  }
  return sum;
}

// Characters of each segment. What rounding gives to small ones is taken from the largest.
std::vector<std::size_t> lengths_of(const std::vector<Segment>& segments, std::uint64_t whole, std::size_t width) {
  std::vector<std::size_t> lengths;
  std::size_t used = 0;
  for (const Segment& segment : segments) {
    const double exact = static_cast<double>(segment.amount) / static_cast<double>(whole) * static_cast<double>(width);
    lengths.push_back(segment.amount == 0 ? 0 : std::max<std::size_t>(1, static_cast<std::size_t>(exact + 0.5)));
    used += lengths.back();
  }
  while (used > width) {
    std::size_t& largest = *std::ranges::max_element(lengths);
    if (largest <= 1) break;
    --largest;
    --used;
  }
  return lengths;
}

std::string times(const char* filling, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += filling;
  return out;
}

struct Scale {
  double per_unit, bottom;
  double height(std::uint64_t amount) const { return static_cast<double>(amount) * per_unit; }
};

std::string column(const Stack& stack, double x, double width, const Scale& scale) {
  std::string out;
  double top = scale.bottom;
  for (std::size_t i = 0; i < stack.segments.size(); ++i) {
    const Segment& segment = stack.segments[i];
    const double tall = scale.height(segment.amount);
    top -= tall;
    out += svg::box(x, top, width, tall, svg::kColours[i % svg::kColours.size()],
                    fmt::format("{} {}{}{}", segment.name, segment.shown, stack.label.empty() ? "" : ", ", stack.label));
  }
  return out + svg::text(x + width / 2, scale.bottom + 18, "middle", stack.label);
}

std::string legend(const std::vector<Segment>& segments, double top, bool with_amounts) {
  std::string out;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const double x = svg::kLeft + kLegendStep * static_cast<double>(i % kLegendColumns), y = top + 16 * static_cast<double>(i / kLegendColumns);
    out += svg::box(x, y - 10, 10, 10, svg::kColours[i % svg::kColours.size()], "");
    out += svg::text(x + 16, y, "start", with_amounts ? fmt::format("{} {}", segments[i].name, segments[i].shown) : segments[i].name);
  }
  return out;
}

std::string wall(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#c0392b\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>\n", x1, y1, x2, y2);
}

}  // namespace

std::string stacked_bar(const std::vector<Segment>& segments, const Limit& limit, std::size_t width) {
  KV_CHECK(width >= 10 && segments.size() <= kFillings.size(), "a bar of at least 10 characters and at most six segments");
  const std::uint64_t sum = sum_of(segments), whole = std::max({sum, limit.amount, std::uint64_t{1}});
  const std::vector<std::size_t> lengths = lengths_of(segments, whole, width);
  std::string bar, words;
  std::size_t at = 0;
  const std::size_t wall = limit.amount == 0 || limit.amount >= whole
                               ? width
                               : static_cast<std::size_t>(static_cast<double>(limit.amount) / static_cast<double>(whole) * static_cast<double>(width));
  const auto put = [&](const char* filling, std::size_t count) {
    const std::size_t before = at <= wall && wall < at + count ? wall - at : count;
    bar += times(filling, before);
    if (before < count) bar += "|" + times(filling, count - before);
    at += count;
  };
  for (std::size_t i = 0; i < segments.size(); ++i) {
    put(kFillings[i], lengths[i]);
    words += fmt::format("{}{} {} {}", words.empty() ? "" : "   ", kFillings[i], segments[i].name, segments[i].shown);
  }
  if (at < width) put("·", width - at);
  if (limit.amount != 0) bar += wall == width ? fmt::format("| {}", limit.shown) : fmt::format("  | = {}", limit.shown);
  return bar + "\n" + words + "\n";
}

std::string stacked_bar_svg(std::string_view title, const std::vector<Segment>& segments, const Limit& limit) {
  const std::uint64_t whole = std::max({sum_of(segments), limit.amount, std::uint64_t{1}});
  const double per_unit = (svg::kWidth - svg::kLeft - svg::kRight) / static_cast<double>(whole);
  std::string out = svg::open(title, kBarPicture);
  double x = svg::kLeft;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const double wide = static_cast<double>(segments[i].amount) * per_unit;
    out += svg::box(x, kBarTop, wide, kBarHeight, svg::kColours[i % svg::kColours.size()], fmt::format("{} {}", segments[i].name, segments[i].shown));
    x += wide;
  }
  if (limit.amount != 0) {
    const double at = svg::kLeft + static_cast<double>(limit.amount) * per_unit;
    out += wall(at, kBarTop - 6, at, kBarTop + kBarHeight + 6) + svg::text(at, kBarTop - 10, "end", limit.shown);
  }
  return out + legend(segments, kBarTop + kBarHeight + 26, true) + "</svg>\n";
}

std::string stacked_columns_svg(std::string_view title, const std::vector<Stack>& stacks, const Limit& limit) {
  std::uint64_t most = std::max<std::uint64_t>(limit.amount, 1);
  for (const Stack& stack : stacks) most = std::max(most, sum_of(stack.segments));
  const double bottom = kHeight - kBottom, tall = bottom - svg::kTop - 14;
  const Scale scale{tall / static_cast<double>(most), bottom};
  std::string out = svg::open(title, kHeight);
  const double step = (svg::kWidth - svg::kLeft - svg::kRight) / static_cast<double>(std::max<std::size_t>(stacks.size(), 1));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    out += column(stacks[i], svg::kLeft + step * (static_cast<double>(i) + 0.15), step * 0.7, scale);
  }
  out += svg::line(svg::kLeft, bottom, svg::kWidth - svg::kRight, bottom);
  if (limit.amount != 0) {
    const double y = bottom - scale.height(limit.amount);
    out += wall(svg::kLeft, y, svg::kWidth - svg::kRight, y);
    out += svg::text(svg::kWidth - svg::kRight, y - 4, "end", limit.shown);
  }
  if (!stacks.empty()) out += legend(stacks.front().segments, kHeight - 26, false);
  return out + "</svg>\n";
}

}  // namespace kvasir::report
