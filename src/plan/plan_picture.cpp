#include "plan/plan_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units.hpp"
#include "report/html_page.hpp"
#include "report/numbers.hpp"

namespace kvasir::plan {
namespace {

constexpr std::array<std::string_view, 6> kClasses = {"weights", "cache", "states", "step and tables", "runtime", "reserve"};
constexpr std::uint64_t kColumns = 8;

std::size_t class_of(std::string_view line) {
  if (line.starts_with("weights")) return 0;
  if (line == "kv.state") return 2;
  if (line.starts_with("kv.")) return 1;
  if (line.starts_with("runtime")) return 4;
  if (line == "reserve") return 5;
  return 3;
}

std::vector<report::Segment> all_segments(const CapacityPlan& plan) {
  std::vector<report::Segment> out;
  for (const std::string_view name : kClasses) out.push_back({std::string(name), 0, ""});
  for (const PlanLine& line : plan.lines) out[class_of(line.name)].amount += line.bytes;   // their sum was checked
  for (report::Segment& segment : out) segment.shown = format_bytes(segment.amount);
  return out;
}

report::Limit limit_of(std::uint64_t memory) {
  return {memory, memory == 0 ? "" : format_bytes(memory)};
}

// A column for every step of one number of the input up to twice what was asked; what cannot be planned ends the row.
template <class Change>
std::vector<report::Stack> columns_of(const PlanInput& input, std::uint64_t asked, std::uint64_t most, const Change& change) {
  std::vector<report::Stack> out;
  std::uint64_t before = 0;
  for (std::uint64_t i = 1; i <= kColumns; ++i) {
    const std::uint64_t value = std::min(most, std::max<std::uint64_t>(1, (asked * 2 * i + kColumns - 1) / kColumns));
    if (value == before) continue;
    before = value;
    PlanInput other = input;
    change(other, value);
    const Result<CapacityPlan> plan = plan_capacity(other);
    if (!plan.ok()) break;
    out.push_back({report::format_count(value), all_segments(*plan)});
  }
  return out;
}

// Only the classes that some column has.
void drop_empty(std::vector<report::Stack>& stacks) {
  for (std::size_t i = kClasses.size(); i-- > 0;) {
    if (std::ranges::any_of(stacks, [i](const report::Stack& stack) { return stack.segments[i].amount != 0; })) continue;
    for (report::Stack& stack : stacks) stack.segments.erase(stack.segments.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string columns_svg(const std::string& title, std::vector<report::Stack> stacks, std::uint64_t memory) {
  drop_empty(stacks);
  return report::stacked_columns_svg(title, stacks, limit_of(memory));
}

}  // namespace

std::vector<report::Segment> segments_of(const CapacityPlan& plan) {
  std::vector<report::Segment> out = all_segments(plan);
  std::erase_if(out, [](const report::Segment& segment) { return segment.amount == 0; });
  return out;
}

std::string plan_page(const PlanPage& page, const PlanInput& input, const CapacityPlan& plan, std::uint64_t memory) {
  const std::string requests = columns_svg(
      fmt::format("Sequences of {} tokens", report::format_count(input.length)),
      columns_of(input, input.requests, kMaxRequests, [](PlanInput& to, std::uint64_t value) { to.requests = value; }), memory);
  const std::string lengths = columns_svg(
      fmt::format("Tokens of each of {}", report::format_counted(input.requests, "sequence")),
      columns_of(input, input.length, kMaxLength, [](PlanInput& to, std::uint64_t value) { to.length = value; }), memory);
  std::vector<report::HtmlSection> sections = {
      {"", page.table, report::stacked_bar_svg("As planned: " + format_bytes(plan.total_bytes), segments_of(plan), limit_of(memory))},
      {"More sequences", "", requests},
      {"Longer sequences", "", lengths}};
  if (!page.rest.empty()) sections.push_back({"More answers", page.rest, ""});
  return report::html_page(page.title, sections);
}

}  // namespace kvasir::plan
