#include <fmt/format.h>

#include <ostream>

#include "base/units.hpp"
#include "cli/plan_answer.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownName = 80;

std::string sequences(std::uint64_t count) {
  return fmt::format("{} sequence{}", report::format_count(count), count == 1 ? "" : "s");
}

}  // namespace

void print_plan(const PlanFlags& flags, const Planned& planned, std::ostream& out) {
  const plan::PlanInput& input = planned.input;
  const plan::CapacityPlan& plan = planned.plan;
  out << fmt::format("{}: {} of {} tokens, {} cache\n\n", report::printable(report::shorten(input.shape.name, kShownName)), sequences(input.requests),
                     report::format_count(input.length), flags.kv_cache_dtype);
  report::Table table({{"", report::Align::left}, {"size", report::Align::right}, {"how", report::Align::left}});
  for (const plan::PlanLine& line : plan.lines) table.add_row({line.name, format_bytes(line.bytes), line.how});
  table.add_rule();
  table.add_row({"total", format_bytes(plan.total_bytes), fmt::format("{} B", report::format_count(plan.total_bytes))});
  out << table.render();
  out << fmt::format("\nOne more token of a long sequence: {}. Rows take {} of the cache's {}.\n", format_bytes(plan.kv_bytes_per_token),
                     format_bytes(plan.kv_payload_bytes), format_bytes(plan.kv_bytes));
  if (planned.fit) {
    const Fit& fit = *planned.fit;
    out << fmt::format("{} {}. At this length {} would fit{}; of {} each could have {}.\n",
                       fit.fits ? "Fits in" : "Does not fit in", format_bytes(flags.memory),
                       fit.max_sequences == 0 ? "none" : sequences(fit.max_sequences),
                       fit.max_sequences == plan::kMaxRequests ? " (more are not looked for)" : "", sequences(input.requests),
                       fit.longest_length == 0 ? "no token at all" : report::format_count(fit.longest_length) + " tokens");
  }
  for (const std::string& warning : planned.warnings) out << "warning: " << report::printable(warning) << '\n';
}

}  // namespace kvasir::cli
