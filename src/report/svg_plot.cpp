#include "report/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/numbers.hpp"
#include "report/svg_parts.hpp"

namespace kvasir::report {
namespace {

using svg::kColours, svg::kLeft, svg::kRight, svg::kTop, svg::kWidth, svg::line;

constexpr double kHeight = 320, kBottom = 36;
constexpr std::size_t kPointsMax = 400, kRowsMax = 400;
constexpr std::size_t kCurveColours = 4;

// A place on the page for each value, left to right or bottom to top.
struct Axis {
  double low, high, from, to;
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

std::string nothing(std::string_view title) {
  return svg::open(title, kHeight) + svg::text(kWidth / 2, kHeight / 2, "middle", "nothing to show") + "</svg>\n";
}

void keep_positive_sorted(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !(value > 0) || !std::isfinite(value); });
  std::ranges::sort(values);
}

// Lines at 1, 2 and 5 of each decade.
std::string logarithmic_ticks(const Axis& x) {
  std::string out;
  double last_label = -1e9;
  for (int decade = static_cast<int>(std::floor(x.low)); decade <= static_cast<int>(std::ceil(x.high)); ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double place = decade + std::log10(digit);
      if (place < x.low - 1e-9 || place > x.high + 1e-9) continue;
      out += line(x.at(place), kTop, x.at(place), kHeight - kBottom);
      if (x.at(place) - last_label < 60) continue;
      last_label = x.at(place);
      out += svg::text(x.at(place), kHeight - kBottom + 18, "middle", format_seconds(std::pow(10, place)));
    }
  }
  return out;
}

// ascending, not empty. Steps of the empirical distribution, thinned.
std::string cdf_path(const std::vector<double>& ascending, const Axis& x, const Axis& y, const char* colour) {
  const std::size_t count = ascending.size(), points = std::min(count, kPointsMax);
  std::string path = fmt::format("M{:.1f} {:.1f}", x.at(std::log10(ascending.front())), y.at(0));
  for (std::size_t i = 1; i <= points; ++i) {
    const std::size_t rank = count * i / points;  // values at or below
    path += fmt::format(" H{:.1f} V{:.1f}", x.at(std::log10(ascending[rank - 1])),
                        y.at(static_cast<double>(rank) / static_cast<double>(count)));
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path, colour);
}

std::string bar(double x1, double x2, double y, double height, const char* colour) {
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>", x1, y,
                     std::max(0.4, x2 - x1), height, colour);
}

}  // namespace

std::string cdf_svg(std::string_view title, std::vector<Curve> curves) {
  double low = 1e300, high = 0;
  for (Curve& curve : curves) {
    keep_positive_sorted(curve.seconds);
    if (curve.seconds.empty()) continue;
    low = std::min(low, curve.seconds.front());
    high = std::max(high, curve.seconds.back());
  }
  if (high == 0) return nothing(title);
  const double margin = high / low < 1.2 ? 0.05 : 0;  // equal values still need an axis
  const Axis x{std::log10(low) - margin, std::log10(high) + margin, kLeft, kWidth - kRight},
      y{0, 1, kHeight - kBottom, kTop};
  std::string out = svg::open(title, kHeight) + logarithmic_ticks(x);
  for (const double share : {0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0}) {
    out += line(kLeft, y.at(share), kWidth - kRight, y.at(share));
    if (share != 0.99) out += svg::text(kLeft - 6, y.at(share) + 4, "end", fmt::format("{:g} %", share * 100));
  }
  double legend = kWidth - kRight;
  for (std::size_t i = curves.size(); i-- > 0;) {
    const char* colour = kColours[i % kCurveColours];
    if (!curves[i].seconds.empty()) out += cdf_path(curves[i].seconds, x, y, colour);
    out += fmt::format("<text x=\"{:.1f}\" y=\"18\" text-anchor=\"end\" fill=\"{}\">{}</text>\n", legend, colour,
                       escape_markup(curves[i].name));
    legend -= 9 * static_cast<double>(curves[i].name.size()) + 16;
  }
  return out + "</svg>\n";
}

std::string timeline_svg(std::string_view title, const std::vector<TimelineBar>& bars) {
  double end = 0;
  for (const TimelineBar& one : bars) end = std::max(end, one.end);
  if (bars.empty() || !(end > 0)) return nothing(title);
  const std::size_t rows = std::min(bars.size(), kRowsMax);
  const double row_height = std::clamp(480.0 / static_cast<double>(rows), 1.5, 14.0);
  const double height = kTop + row_height * static_cast<double>(rows) + kBottom;
  const Axis x{0, end, kLeft, kWidth - kRight};
  std::string out = svg::open(
      rows < bars.size() ? fmt::format("{} ({} of {} requests)", title, rows, bars.size()) : std::string(title),
      height);
  for (int i = 0; i <= 8; ++i) {
    out += line(x.at(end * i / 8), kTop, x.at(end * i / 8), height - kBottom);
    out += svg::text(x.at(end * i / 8), height - kBottom + 18, "middle", i == 0 ? "0" : format_seconds(end * i / 8));
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const TimelineBar& one = bars[row * bars.size() / rows];
    const double top = kTop + row_height * static_cast<double>(row), tall = row_height * 0.8;
    out += fmt::format("<g><title>{}</title>", escape_markup(one.label));
    if (one.sent > one.due) out += bar(x.at(one.due), x.at(one.sent), top, tall, "#b8b8b8");
    if (one.failed)
      out += bar(x.at(one.sent), x.at(one.end), top, tall, "#c0392b");
    else
      out += bar(x.at(one.sent), x.at(one.first), top, tall, "#e8b34b") +
             bar(x.at(one.first), x.at(one.end), top, tall, kColours[0]);
    out += "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace kvasir::report
