#include "report/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::report {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr double kRedrawSeconds = 0.1;

}  // namespace

std::string progress_text(std::string_view label, std::uint64_t done, std::uint64_t total, std::string_view unit, double seconds) {
  if (total == 0) return fmt::format("{}  {} {}  {}", label, format_count(done), unit, format_seconds(seconds));
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  std::string text = fmt::format("{}  [{}{}]  {:.0f}%  {}/{} {}  {}", label, std::string(filled, '#'),
                                 std::string(kBarWidth - filled, '.'), share * 100, format_count(done), format_count(total), unit,
                                 format_seconds(seconds));
  if (done > 0 && done < total) text += fmt::format(", {} left", format_seconds(seconds / share - seconds));
  return text;
}

ProgressLine::ProgressLine(std::ostream& out, bool visible, std::string label, std::string unit)
    : out_(out), visible_(visible), label_(std::move(label)), unit_(std::move(unit)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(std::uint64_t done, std::uint64_t total, double seconds) {
  if (!visible_) return;
  if (drawn_at_ >= 0 && seconds - drawn_at_ < kRedrawSeconds && done != total) return;
  const std::string text = progress_text(label_, done, total, unit_, seconds);
  const std::size_t width = display_width(text);
  out_ << '\r' << text << std::string(drawn_width_ - std::min(drawn_width_, width), ' ') << std::flush;
  drawn_width_ = width;
  drawn_at_ = seconds;
}

void ProgressLine::clear() {
  if (drawn_width_ == 0) return;
  out_ << '\r' << std::string(drawn_width_, ' ') << '\r' << std::flush;
  drawn_width_ = 0;
  drawn_at_ = -1;
}

}  // namespace kvasir::report
