#include "load/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::load {
namespace {

using report::Align;

std::string rate_text(double rate) { return std::isinf(rate) ? "all at once" : fmt::format("{:g} requests/s", rate); }

std::string with_interval(const stats::Interval& interval) {
  return fmt::format("{} [{}, {}]", report::format_seconds(interval.estimate), report::format_seconds(interval.low),
                     report::format_seconds(interval.high));
}

std::string totals(const Metrics& metrics, const MetricOptions& options, const RunDescription& description) {
  report::Table table({{"", Align::left}, {"", Align::left}});
  table.add_row({"requests", fmt::format("{} completed, {} failed, {} at once at most",
                                         report::format_count(metrics.completed), report::format_count(metrics.failed),
                                         report::format_count(metrics.max_concurrent_requests))});
  table.add_row({"offered", description.max_concurrency > 0
                                ? fmt::format("{}, at most {} at once", rate_text(description.request_rate),
                                              description.max_concurrency)
                                : rate_text(description.request_rate)});
  table.add_row({"duration", report::format_seconds(metrics.duration_s)});
  table.add_row({"tokens", fmt::format("{} in ({} cached), {} out", report::format_count(metrics.input_tokens),
                                       report::format_count(metrics.cached_tokens),
                                       report::format_count(metrics.output_tokens))});
  table.add_row({"throughput", fmt::format("{} requests/s, {} tok/s out ({} in the best second), {} tok/s in all",
                                           report::format_rate(metrics.request_throughput),
                                           report::format_rate(metrics.output_throughput),
                                           report::format_count(metrics.max_output_tokens_per_s),
                                           report::format_rate(metrics.total_token_throughput))});
  if (options.objectives.any()) {
    table.add_row({"goodput", fmt::format("{} requests/s within the objectives; {} with the client queue counted in",
                                          report::format_rate(metrics.request_goodput),
                                          report::format_rate(metrics.request_goodput_from_schedule))});
  }
  table.add_row(
      {"client", fmt::format("{} of CPU time, {} connections", report::format_seconds(description.client_cpu_s),
                             report::format_count(description.connections_opened))});
  return table.render();
}

void add_latency(report::Table& table, const char* name, const Distribution& distribution) {
  std::vector<std::string> cells = {name, report::format_seconds(distribution.mean),
                                    with_interval(distribution.median)};
  for (const Percentile& percentile : distribution.percentiles) cells.push_back(with_interval(percentile.seconds));
  if (distribution.count == 0) std::fill(cells.begin() + 1, cells.end(), "-");
  table.add_row(std::move(cells));
}

std::string latencies(const Metrics& metrics, const MetricOptions& options, const RunDescription& description) {
  std::vector<report::Column> columns = {{"latency", Align::left}, {"mean", Align::right}, {"median", Align::right}};
  for (const double percent : options.percents) columns.push_back({"p" + percent_word(percent), Align::right});
  report::Table table(std::move(columns));
  for (const std::string& name : description.metric_names) {
    if (name == "ttft") add_latency(table, "TTFT", metrics.ttft);
    if (name == "tpot") add_latency(table, "TPOT", metrics.tpot);
    if (name == "itl") add_latency(table, "ITL", metrics.itl);
    if (name == "e2el") add_latency(table, "E2EL", metrics.e2el);
  }
  add_latency(table, "client queue", metrics.client_queue_time);
  add_latency(table, "TTFT from schedule", metrics.ttft_including_client_queue);
  add_latency(table, "E2EL from schedule", metrics.e2el_including_client_queue);
  return table.render();
}

std::string errors(const RunRecord& run, const Metrics& metrics) {
  if (metrics.errors.empty()) return {};
  report::Table table({{"error", Align::left}, {"requests", Align::right}, {"the first", Align::left}});
  for (const auto& [kind, count] : metrics.errors) {
    std::string first;
    for (const RequestRecord& record : run.requests) {
      if (record.error_kind != kind) continue;
      first = record.error_message;
      break;
    }
    table.add_row({kind, report::format_count(count), report::shorten(first, 100)});
  }
  return "\n" + table.render();
}

}  // namespace

std::string result_table(const RunRecord& run, const Metrics& metrics, const MetricOptions& options,
                         const RunDescription& description) {
  return totals(metrics, options, description) + "\n" + latencies(metrics, options, description) +
         fmt::format("[low, high]: {:g} % bootstrap intervals over requests.\n", options.bootstrap.confidence * 100) +
         errors(run, metrics);
}

}  // namespace kvasir::load
