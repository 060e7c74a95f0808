#include "load/latency_page.hpp"

#include <fmt/format.h>

#include "load/metrics.hpp"
#include "platform/clock.hpp"
#include "report/html_page.hpp"
#include "report/numbers.hpp"
#include "report/svg_plot.hpp"

namespace kvasir::load {
namespace {

using platform::seconds_between;

std::vector<report::TimelineBar> timeline(const RunRecord& run) {
  std::vector<report::TimelineBar> bars;
  for (const RequestRecord& record : run.requests) {
    if (record.sent_ns == 0) continue;
    report::TimelineBar bar;
    bar.due = seconds_between(run.started_ns, record.scheduled_ns);
    bar.sent = seconds_between(run.started_ns, record.sent_ns);
    bar.failed = !record.good();
    bar.first = bar.failed ? bar.sent : seconds_between(run.started_ns, record.token_ns.front());
    bar.end = seconds_between(run.started_ns, bar.failed ? record.ended_ns : record.token_ns.back());
    bar.label = bar.failed
                    ? fmt::format("request {}.{}: {}: {}", record.conversation, record.turn, record.error_kind,
                                  record.error_message)
                    : fmt::format("request {}.{}: {} in, {} out, TTFT {}", record.conversation, record.turn,
                                  record.input_tokens, record.output_tokens, report::format_seconds(ttft_s(record)));
    bars.push_back(std::move(bar));
  }
  return bars;
}

}  // namespace

std::string latency_page(const std::string& title, const std::string& table, const RunRecord& run) {
  report::Curve ttft{"TTFT", {}}, queued{"TTFT from schedule", {}}, itl{"ITL", {}};
  for (const RequestRecord& record : run.requests) {
    if (!record.good()) continue;
    ttft.seconds.push_back(ttft_s(record));
    queued.seconds.push_back(seconds_between(record.scheduled_ns, record.token_ns.front()));
    const std::vector<double> gaps = gaps_s(record);
    itl.seconds.insert(itl.seconds.end(), gaps.begin(), gaps.end());
  }
  return report::html_page(
      title,
      {{"", table, ""},
       {"Time to first token", "", report::cdf_svg("Share of requests", {std::move(ttft), std::move(queued)})},
       {"Time between tokens", "", report::cdf_svg("Share of gaps", {std::move(itl)})},
       {"Requests", "",
        report::timeline_svg("Held back (grey), waiting (yellow), generating (blue), failed (red)", timeline(run))}});
}

}  // namespace kvasir::load
