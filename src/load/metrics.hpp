// The numbers of a run, as `vllm bench serve` defines them, from the records alone.
//   TTFT   first token - sent           TPOT   (last token - first token) / (output tokens - 1), if there are two
//   ITL    gaps between tokens          E2EL   last token - sent
//   client queue time   sent - scheduled: what the concurrency limit, or a client that is late, held back
// Latencies that include the client queue count from the scheduled time: without coordinated omission whatever the
// limit. Intervals are bootstrap intervals over requests (stats/quantile_interval.hpp). Failed requests count in
// nothing but `failed` and `errors`. Pure functions, any thread; deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "load/record.hpp"
#include "stats/bootstrap.hpp"

namespace kvasir::load {

struct Percentile {
  double percent = 0;  // 99, 99.9
  stats::Interval seconds;
};

// Of one latency over the good requests. All zero if there are none.
struct Distribution {
  std::size_t count = 0;
  double mean = 0, deviation = 0;  // s; of the population
  stats::Interval median;          // s
  std::vector<Percentile> percentiles;
};

// The most a good request may take, ms; none: not asked.
struct Objectives {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;
  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

// "ttft:500", "tpot:50", "e2el:4000". Errors: usage, with the word and the valid form.
Result<Objectives> parse_objectives(const std::vector<std::string>& words);

struct MetricOptions {
  std::vector<double> percents = {99};  // in [0, 100]
  Objectives objectives = {};
  stats::BootstrapOptions bootstrap = {};
};

struct Metrics {
  double duration_s = 0;  // from the start to the end of the last exchange
  std::uint64_t completed = 0, failed = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;              // of completed requests
  double request_throughput = 0, output_throughput = 0, total_token_throughput = 0;  // per second
  double request_goodput = 0;                // completed within the objectives, per second
  double request_goodput_from_schedule = 0;  // the same with the client queue counted in
  Distribution ttft, tpot, itl, e2el, client_queue_time, ttft_including_client_queue, e2el_including_client_queue;
  std::uint64_t max_output_tokens_per_s = 0;  // in the best second since the first was sent
  std::uint64_t max_concurrent_requests = 0;
  std::map<std::string, std::uint64_t> errors;  // by kind
};

Metrics compute_metrics(const RunRecord& run, const MetricOptions& options);

// Of a good request, seconds.
double ttft_s(const RequestRecord& record);
double tpot_s(const RequestRecord& record);  // 0 with one token
double e2el_s(const RequestRecord& record);
std::vector<double> gaps_s(const RequestRecord& record);

}  // namespace kvasir::load
