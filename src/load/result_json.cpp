#include "load/result_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "platform/clock.hpp"

namespace kvasir::load {
namespace {

using report::Json;

Json interval_ms(const stats::Interval& interval) { return Json::array({interval.low * 1e3, interval.high * 1e3}); }

void add_latency(Json& result, Json& intervals, const std::string& name, const Distribution& distribution) {
  result[fmt::format("mean_{}_ms", name)] = distribution.mean * 1e3;
  result[fmt::format("median_{}_ms", name)] = distribution.median.estimate * 1e3;
  result[fmt::format("std_{}_ms", name)] = distribution.deviation * 1e3;
  if (distribution.count > 0) intervals[fmt::format("median_{}_ms", name)] = interval_ms(distribution.median);
  for (const Percentile& percentile : distribution.percentiles) {
    const std::string key = fmt::format("p{}_{}_ms", percent_word(percentile.percent), name);
    result[key] = percentile.seconds.estimate * 1e3;
    if (distribution.count > 0) intervals[key] = interval_ms(percentile.seconds);
  }
}

void add_head(Json& result, const RunRecord& run, const RunDescription& description) {
  result["date"] = description.date;
  result["endpoint_type"] = description.backend;
  result["backend"] = description.backend;
  result["label"] = nullptr;
  result["model_id"] = description.model;
  result["tokenizer_id"] = nullptr;  // the server counts
  result["num_prompts"] = run.requests.size();
  result["request_rate"] = std::isinf(description.request_rate) ? Json("inf") : Json(description.request_rate);
  result["burstiness"] = std::isinf(description.burstiness) ? Json("inf") : Json(description.burstiness);
  result["max_concurrency"] = description.max_concurrency > 0 ? Json(description.max_concurrency) : Json();
}

void add_totals(Json& result, const Metrics& metrics, const Objectives& objectives) {
  result["duration"] = metrics.duration_s;
  result["completed"] = metrics.completed;
  result["failed"] = metrics.failed;
  result["total_input_tokens"] = metrics.input_tokens;
  result["total_output_tokens"] = metrics.output_tokens;
  result["request_throughput"] = metrics.request_throughput;
  result["request_goodput"] = objectives.any() ? Json(metrics.request_goodput) : Json();
  result["output_throughput"] = metrics.output_throughput;
  result["total_token_throughput"] = metrics.total_token_throughput;
}

// One entry a request; a failed one has zeros and its error.
void add_requests(Json& result, const RunRecord& run, bool texts) {
  Json input_lens = Json::array(), output_lens = Json::array(), ttfts = Json::array(), itls = Json::array(),
       latencies = Json::array(), start_times = Json::array(), queue_times = Json::array(),
       generated_texts = Json::array(), errors = Json::array();
  for (const RequestRecord& record : run.requests) {
    input_lens.push_back(record.input_tokens);
    output_lens.push_back(record.good() ? record.output_tokens : 0);
    ttfts.push_back(record.good() ? ttft_s(record) : 0);
    itls.push_back(record.good() ? gaps_s(record) : std::vector<double>());
    latencies.push_back(record.good() ? e2el_s(record) : 0);
    const bool sent = record.sent_ns != 0;
    start_times.push_back(sent ? platform::seconds_between(run.started_ns, record.sent_ns) : 0);
    queue_times.push_back(sent ? platform::seconds_between(record.scheduled_ns, record.sent_ns) : 0);
    generated_texts.push_back(record.text);
    errors.push_back(record.good() ? "" : fmt::format("{}: {}", record.error_kind, record.error_message));
  }
  result["input_lens"] = std::move(input_lens);
  result["output_lens"] = std::move(output_lens);
  result["ttfts"] = std::move(ttfts);
  result["itls"] = std::move(itls);
  result["latencies"] = std::move(latencies);
  result["start_times"] = std::move(start_times);
  result["queue_times"] = std::move(queue_times);
  if (texts) result["generated_texts"] = std::move(generated_texts);
  result["errors"] = std::move(errors);
}

Json own_object(const RunRecord& run, const Metrics& metrics, const MetricOptions& options,
                const RunDescription& description, Json intervals) {
  Json own;
  own["address"] = description.address;
  own["seed"] = description.seed;
  own["interrupted"] = run.interrupted;
  own["confidence"] = options.bootstrap.confidence;
  own["intervals"] = std::move(intervals);
  own["request_goodput_from_schedule"] =
      options.objectives.any() ? Json(metrics.request_goodput_from_schedule) : Json();
  own["total_cached_tokens"] = metrics.cached_tokens;
  own["tokens_counted_by_server"] = std::ranges::all_of(
      run.requests, [](const RequestRecord& record) { return !record.good() || record.counted_by_server; });
  own["errors_by_kind"] = metrics.errors;
  own["connections_opened"] = description.connections_opened;
  own["client_cpu_s"] = description.client_cpu_s;
  own["client_cpu_us_per_token"] =
      metrics.output_tokens > 0 ? Json(description.client_cpu_s * 1e6 / static_cast<double>(metrics.output_tokens))
                                : Json();
  return own;
}

}  // namespace

std::string percent_word(double percent) { return fmt::format("{}", percent); }

Json result_json(const RunRecord& run, const Metrics& metrics, const MetricOptions& options,
                 const RunDescription& description) {
  Json result, intervals = Json::object();
  add_head(result, run, description);
  add_totals(result, metrics, options.objectives);
  add_requests(result, run, description.texts);
  result["max_output_tokens_per_s"] = metrics.max_output_tokens_per_s;
  result["max_concurrent_requests"] = metrics.max_concurrent_requests;
  result["rtfx"] = 0.0;  // of audio; there for readers that expect every key
  for (const std::string& name : description.metric_names) {
    const Distribution& distribution = name == "ttft"   ? metrics.ttft
                                       : name == "tpot" ? metrics.tpot
                                       : name == "itl"  ? metrics.itl
                                                        : metrics.e2el;
    add_latency(result, intervals, name, distribution);
  }
  add_latency(result, intervals, "client_queue_time", metrics.client_queue_time);
  add_latency(result, intervals, "ttft_including_client_queue", metrics.ttft_including_client_queue);
  add_latency(result, intervals, "e2el_including_client_queue", metrics.e2el_including_client_queue);
  result["kvasir"] = own_object(run, metrics, options, description, std::move(intervals));
  return result;
}

}  // namespace kvasir::load
