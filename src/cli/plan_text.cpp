#include <fmt/format.h>

#include <ostream>
#include <sstream>

#include "base/units.hpp"
#include "cli/plan_answer.hpp"
#include "plan/plan_picture.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownName = 80;
constexpr std::size_t kBarWidth = 72;

std::string sequences(std::uint64_t count) { return report::format_counted(count, "sequence"); }

std::string title_of(const PlanFlags& flags, const plan::PlanInput& input) {
  return fmt::format("{}: {} of {}{} tokens, {} cache", report::printable(report::shorten(input.shape.name, kShownName)), sequences(input.requests),
                     input.held ? "the mix, up to " : "", report::format_count(input.length), flags.kv_cache_dtype);
}

std::string lines_table(const Planned& planned) {
  const plan::CapacityPlan& plan = planned.plan;
  report::Table table({{"", report::Align::left}, {"size", report::Align::right}, {"how", report::Align::left}});
  for (const plan::PlanLine& line : plan.lines) table.add_row({line.name, format_bytes(line.bytes), line.how});
  table.add_rule();
  table.add_row({"total", format_bytes(plan.total_bytes), fmt::format("{} B", report::format_count(plan.total_bytes))});
  if (planned.fit && planned.fit->fits && !planned.device.parallel)
    table.add_row({"free", format_bytes(planned.fit->free), fmt::format("of {}", format_bytes(planned.device.memory))});
  return table.render();
}

std::string fit_words(const Planned& planned) {
  if (!planned.fit) return "";
  const Fit& fit = *planned.fit;
  const std::string answer = fmt::format("{} {}{}.", fit.fits ? "Fits in" : "Does not fit in", format_bytes(planned.device.memory), planned.device.parallel ? " a device" : "");
  if (!fit.longest_length) return answer + "\n";   // the mix tells the rest
  return fmt::format("{} At this length {} would fit{}; of {} each could have {}.\n", answer,
                     fit.max_sequences == 0 ? "none" : sequences(fit.max_sequences),
                     fit.max_sequences == plan::kMaxRequests ? " (more are not looked for)" : "", sequences(planned.input.requests),
                     fit.longest_length == 0 ? "no token at all" : report::format_count(*fit.longest_length) + " tokens");
}

std::string what_if_table(const WhatIfTable& what_if, bool with_memory) {
  std::vector<report::Column> columns;
  for (const plan::Axis axis : what_if.axes) columns.push_back({std::string(to_string(axis)), report::Align::left});
  for (const char* title : {"a token", "cache", "total"}) columns.push_back({title, report::Align::right});
  if (with_memory) columns.push_back({"sequences", report::Align::right});
  report::Table table(std::move(columns));
  for (const plan::Alternative& one : what_if.rows) {
    std::vector<std::string> cells = one.choices;
    cells.insert(cells.end(), {format_bytes(one.kv_bytes_per_token), format_bytes(one.kv_bytes + one.state_bytes), format_bytes(one.total_bytes)});
    if (with_memory) cells.push_back(one.max_sequences ? report::format_count(*one.max_sequences) : "");
    table.add_row(std::move(cells));
  }
  return table.render();
}

std::string what_if_words(const Planned& planned) {
  if (planned.what_if.empty()) return "";
  std::string out = "\nWith other choices (other heads and windows are other models, trained so):\n";
  for (const WhatIfTable& table : planned.what_if) out += "\n" + what_if_table(table, planned.device.one_memory() != 0);
  return out;
}

std::string launch_words(const Planned& planned) {
  std::string out;
  for (const plan::LaunchCommand& one : planned.launch) {
    out += fmt::format("\n# {}\n{}\n", one.engine, report::printable(one.command));
    for (const std::string& note : one.notes) out += fmt::format("#   {}\n", note);
  }
  return out;
}

}  // namespace

void print_plan(const PlanFlags& flags, const Planned& planned, std::ostream& out) {
  const plan::CapacityPlan& plan = planned.plan;
  const std::uint64_t memory = planned.device.one_memory();
  const report::Limit limit{memory, memory == 0 ? "" : format_bytes(memory)};
  out << title_of(flags, planned.input) << "\n\n" << lines_table(planned) << '\n';
  out << report::stacked_bar(plan::segments_of(plan), limit, kBarWidth);
  const std::uint64_t below = plan.kv.growth_below_windows_bytes();
  const std::string windowed = below == plan.kv_bytes_per_token ? "" : fmt::format(" (while below the window: {})", format_bytes(below));
  out << fmt::format("\nOne more token of a long sequence: {}{}. Rows take {} of the cache's {}.\n", format_bytes(plan.kv_bytes_per_token),
                     windowed, format_bytes(plan.kv_payload_bytes), format_bytes(plan.kv_bytes));
  out << fit_words(planned);
  print_device(flags.on, planned.device, out);
  if (planned.mix) print_mix(flags.mix, *planned.mix, out);
  for (const std::string& warning : planned.warnings) out << "warning: " << report::printable(warning) << '\n';
  out << what_if_words(planned);
  if (flags.launch) out << launch_words(planned);
}

std::string plan_html(const PlanFlags& flags, const Planned& planned) {
  std::ostringstream machine;
  print_device(flags.on, planned.device, machine);
  std::string rest = fit_words(planned) + machine.str();
  for (const std::string& warning : planned.warnings) rest += "warning: " + report::printable(warning) + "\n";
  rest += what_if_words(planned) + launch_words(planned);
  return plan::plan_page({title_of(flags, planned.input), lines_table(planned), std::move(rest)}, planned.input, planned.plan, planned.device.one_memory());
}

}  // namespace kvasir::cli
