// The server's metrics: a registry of metric_table() and the calls that update it, a few a step and a few a request.
//
// Thread rule: any thread. Each call is cheap: atomic adds, and one short lock a histogram however many values it gets.
// Invariants: every row of the table is there from the start and reads 0. In every exposition
//   prompt_tokens_by_source{local_compute} + {local_cache_hit} + {external_kv_transfer} = prompt_tokens_total.
// Counts are of facts: nothing is counted again when a request is tried a second time.
// Source: Prometheus text format 0.0.4, by prometheus-cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "server/http/http_config.hpp"
#include "server/http/http_server.hpp"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace kvasir::server {

// Handles of single series, for what no call below covers. They live as long as the Metrics they came from.
class CounterHandle {
 public:
  explicit CounterHandle(prometheus::Counter& counter) : counter_(&counter) {}
  void add(double by = 1);   // by >= 0
 private:
  prometheus::Counter* counter_;
};
class GaugeHandle {
 public:
  explicit GaugeHandle(prometheus::Gauge& gauge) : gauge_(&gauge) {}
  void set(double value);
 private:
  prometheus::Gauge* gauge_;
};
class HistogramHandle {
 public:
  HistogramHandle(prometheus::Histogram& histogram, std::span<const double> bounds) : histogram_(&histogram), bounds_(bounds) {}
  void observe(double value) { observe(std::span(&value, 1)); }
  void observe(std::span<const double> values);   // one lock for all
 private:
  prometheus::Histogram* histogram_;
  std::span<const double> bounds_;
};

inline constexpr std::size_t kCacheGroups = 8;   // that have series

struct MetricsConfig {
  std::string model_name;
  std::string engine = "0";
  std::uint32_t max_model_len = 0;   // tokens; bounds the buckets of token counts
  // Labels of vllm:cache_config_info.
  std::uint32_t block_size = 0;      // tokens
  std::uint64_t num_gpu_blocks = 0;  // of the first tier, which here is RAM
  std::uint64_t num_cpu_blocks = 0;
  std::string cache_dtype;
  bool enable_prefix_caching = false;
  double gpu_memory_utilization = 0;
};

// One step of the engine.
struct StepSample {
  std::uint32_t prefill_tokens = 0, decode_tokens = 0;   // rows
  std::uint32_t generated_tokens = 0;
  std::uint32_t preemptions = 0;
  double seconds = 0, predicted_seconds = 0;             // predicted: 0 where there is no prediction
};

// What is true between two steps.
struct LoadSample {
  std::uint32_t running = 0;
  struct Waiting {
    std::uint32_t memory = 0, batch_slots = 0, token_budget = 0, step_time = 0, priority = 0, prefix_in_progress = 0, paused = 0;
  } waiting;   // requests by what they wait for
  std::uint64_t queued_prompt_tokens = 0;
  std::uint64_t reserved_tokens = 0;
};

struct CacheSample {
  std::uint64_t free_blocks = 0, active_blocks = 0, cached_blocks = 0, pinned_blocks = 0, quarantined_blocks = 0;
  std::uint64_t held_bytes = 0, capacity_bytes = 0, slack_bytes = 0;
  std::uint64_t logical_tokens = 0, allocated_tokens = 0, claimed_tokens = 0;
};

// A cache group; counts of blocks. left_behind and moved since the start.
struct CacheGroupSample {
  std::uint64_t free = 0, active = 0, cached = 0, quarantined = 0, claimed = 0, superpages = 0;
  std::uint64_t left_behind = 0, moved = 0;
};

// A request, once, when it is admitted.
struct AdmittedSample {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t looked_up_tokens = 0;   // in the prefix cache
  std::uint64_t hit_tokens = 0;         // found there; hit + external <= prompt, hit <= looked up
  std::uint64_t external_looked_up_tokens = 0;
  std::uint64_t external_tokens = 0;    // found in another tier
};

enum class FinishReason { stop, length, abort, error, repetition };

// A request, once, when it ended. Times in seconds.
struct FinishedSample {
  FinishReason reason = FinishReason::stop;
  std::uint64_t prompt_tokens = 0, computed_prompt_tokens = 0;
  std::uint64_t generated_tokens = 0, longest_choice_tokens = 0;
  std::uint64_t max_tokens = 0;
  std::uint32_t n = 1;
  double queue = 0, prefill = 0, decode = 0, end_to_end = 0;   // decode: of the longest choice
};

class Metrics {
 public:
  // Errors: bad_input: empty model_name, max_model_len 0.
  static Result<std::unique_ptr<Metrics>> create(const MetricsConfig& config);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void on_step(const StepSample& step);
  void on_admitted(const AdmittedSample& request);   // REQUIRES: its inequalities hold
  void on_finished(const FinishedSample& request);
  void on_access(const AccessRecord& record);
  void set_load(const LoadSample& load);
  void set_cache(const CacheSample& cache);
  void set_cache_groups(std::span<const CacheGroupSample> groups);   // REQUIRES: at most kCacheGroups
  void set_http(const HttpStats& stats);             // before each exposition

  // REQUIRES: a series of metric_table(), `values` in the order of the row's labels.
  CounterHandle counter(std::string_view name, std::initializer_list<std::string_view> values = {});
  GaugeHandle gauge(std::string_view name, std::initializer_list<std::string_view> values = {});
  HistogramHandle histogram(std::string_view name, std::initializer_list<std::string_view> values = {});

  // What GET /metrics answers, with this content type.
  std::string exposition() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct State;
  explicit Metrics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
