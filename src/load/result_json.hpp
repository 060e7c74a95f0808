// A run's result with the keys of `vllm bench serve` (0.33), in its order, and one object of our own, "kvasir":
// intervals, errors by kind, what is counted from the schedule, the client's own cost. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "load/metrics.hpp"
#include "load/record.hpp"
#include "report/json.hpp"

namespace kvasir::load {

// What the metrics do not know.
struct RunDescription {
  std::string date;     // YYYYMMDD-HHMMSS, local
  std::string backend;  // "openai", "openai-chat"
  std::string model;
  std::string address;
  double request_rate = 0;  // infinity: "inf"
  double burstiness = 1;
  std::uint32_t max_concurrency = 0;  // 0: null
  std::uint64_t seed = 0;
  double client_cpu_s = 0;  // of this process while it ran
  std::uint64_t connections_opened = 0;
  std::vector<std::string> metric_names;  // the latencies to tell: of kMetricNames
  bool texts = false;                     // generated_texts too
};

// "ttft", "tpot", "itl", "e2el": what --percentile-metrics takes.
inline constexpr const char* kMetricNames[] = {"ttft", "tpot", "itl", "e2el"};

report::Json result_json(const RunRecord& run, const Metrics& metrics, const MetricOptions& options,
                         const RunDescription& description);

// The percent as it stands in keys: "99", "99.9".
std::string percent_word(double percent);

}  // namespace kvasir::load
