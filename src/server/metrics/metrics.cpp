#include "server/metrics/metrics.hpp"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "platform/memory.hpp"
#include "server/metrics/registry.hpp"

namespace kvasir::server {

void CounterHandle::add(double by) { counter_->Increment(by); }
void GaugeHandle::set(double value) { gauge_->Set(value); }

void HistogramHandle::observe(std::span<const double> values) {
  if (values.empty()) return;
  std::vector<double> increments(bounds_.size() + 1, 0.0);
  double sum = 0;
  for (const double value : values) {
    const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    increments[static_cast<std::size_t>(bound - bounds_.begin())] += 1;
    sum += value;
  }
  histogram_->ObserveMultiple(increments, sum);
}

// The handles that the calls of Metrics need, looked up once.
struct Metrics::State {
  explicit State(const MetricsConfig& config)
      : registry({{"model_name", config.model_name}, {"engine", config.engine}}, config.max_model_len) {}

  CounterHandle counter(std::string_view name, std::initializer_list<std::string_view> values = {}) {
    return CounterHandle(registry.counter(name, values));
  }
  GaugeHandle gauge(std::string_view name, std::initializer_list<std::string_view> values = {}) {
    return GaugeHandle(registry.gauge(name, values));
  }
  HistogramHandle histogram(std::string_view name, std::initializer_list<std::string_view> values = {}) {
    const auto series = registry.histogram(name, values);
    return HistogramHandle(*series.histogram, *series.bounds);
  }

  void announce_config(const MetricsConfig& config);

  MetricRegistry registry;
  // Held while a request's tokens are split by source and while a scrape collects, so that every scrape sees them add up.
  mutable std::mutex prompt_mutex;

  struct Step {
    explicit Step(State& s)
        : steps(s.counter("kvasir_steps_total")), prefill(s.counter("kvasir_step_tokens_total", {"prefill"})),
          decode(s.counter("kvasir_step_tokens_total", {"decode"})), last_prefill(s.gauge("kvasir_batch_tokens", {"prefill"})),
          last_decode(s.gauge("kvasir_batch_tokens", {"decode"})), generated(s.counter("vllm:generation_tokens_total")),
          preemptions(s.counter("vllm:num_preemptions_total")), tokens(s.histogram("vllm:iteration_tokens_total")),
          seconds(s.histogram("kvasir_step_seconds")), predicted(s.histogram("kvasir_step_predicted_seconds")) {}
    CounterHandle steps, prefill, decode;
    GaugeHandle last_prefill, last_decode;
    CounterHandle generated, preemptions;
    HistogramHandle tokens, seconds, predicted;
  } step{*this};

  struct Prompt {
    explicit Prompt(State& s)
        : tokens(s.counter("vllm:prompt_tokens_total")),
          computed(s.counter("vllm:prompt_tokens_by_source_total", {"local_compute"})),
          hit(s.counter("vllm:prompt_tokens_by_source_total", {"local_cache_hit"})),
          external(s.counter("vllm:prompt_tokens_by_source_total", {"external_kv_transfer"})),
          cached(s.counter("vllm:prompt_tokens_cached_total")), queries(s.counter("vllm:prefix_cache_queries_total")),
          hits(s.counter("vllm:prefix_cache_hits_total")),
          external_queries(s.counter("vllm:external_prefix_cache_queries_total")),
          external_hits(s.counter("vllm:external_prefix_cache_hits_total")) {}
    CounterHandle tokens, computed, hit, external, cached, queries, hits, external_queries, external_hits;
  } prompt{*this};

  struct Request {
    explicit Request(State& s)
        : success{s.counter("vllm:request_success_total", {"stop"}), s.counter("vllm:request_success_total", {"length"}),
                  s.counter("vllm:request_success_total", {"abort"}), s.counter("vllm:request_success_total", {"error"}),
                  s.counter("vllm:request_success_total", {"repetition"})},
          per_token(s.histogram("vllm:request_time_per_output_token_seconds")),
          end_to_end(s.histogram("vllm:e2e_request_latency_seconds")),
          queue(s.histogram("vllm:request_queue_time_seconds")), prefill(s.histogram("vllm:request_prefill_time_seconds")),
          decode(s.histogram("vllm:request_decode_time_seconds")),
          inference(s.histogram("vllm:request_inference_time_seconds")),
          prompt_tokens(s.histogram("vllm:request_prompt_tokens")),
          generated(s.histogram("vllm:request_generation_tokens")),
          longest(s.histogram("vllm:request_max_num_generation_tokens")),
          max_tokens(s.histogram("vllm:request_params_max_tokens")), n(s.histogram("vllm:request_params_n")),
          computed(s.histogram("vllm:request_prefill_kv_computed_tokens")) {}
    std::array<CounterHandle, 5> success;   // by FinishReason
    HistogramHandle per_token, end_to_end, queue, prefill, decode, inference;
    HistogramHandle prompt_tokens, generated, longest, max_tokens, n, computed;
  } request{*this};

  std::mutex scrape_mutex;
  HttpStats http;   // as of the last set_http
  std::array<CacheGroupSample, kCacheGroups> groups{};   // as of the last set_cache_groups
};

void Metrics::State::announce_config(const MetricsConfig& config) {
  auto& family = prometheus::BuildGauge().Name("vllm:cache_config_info").Help("The cache's configuration; always 1.")
                     .Register(registry.prometheus());
  family.Add({{"model_name", config.model_name}, {"engine", config.engine},
              {"block_size", std::to_string(config.block_size)}, {"num_gpu_blocks", std::to_string(config.num_gpu_blocks)},
              {"num_cpu_blocks", std::to_string(config.num_cpu_blocks)}, {"cache_dtype", config.cache_dtype},
              {"enable_prefix_caching", config.enable_prefix_caching ? "True" : "False"},
              {"gpu_memory_utilization", fmt::format("{}", config.gpu_memory_utilization)}}).Set(1);
  gauge("vllm:engine_sleep_state", {"awake"}).set(1);
  gauge("kvasir_kv_tier_up", {"ram"}).set(1);
}

Metrics::Metrics(std::unique_ptr<State> state) : state_(std::move(state)) {}
Metrics::~Metrics() = default;

Result<std::unique_ptr<Metrics>> Metrics::create(const MetricsConfig& config) {
  if (config.model_name.empty()) return Error{ErrorCode::bad_input, "metrics: model_name is empty; it must name the model"};
  if (config.max_model_len == 0) return Error{ErrorCode::bad_input, "metrics: max_model_len is 0; it must be at least 1"};
  auto state = std::make_unique<State>(config);
  state->announce_config(config);
  return std::unique_ptr<Metrics>(new Metrics(std::move(state)));
}

void Metrics::on_step(const StepSample& sample) {
  State::Step& step = state_->step;
  step.steps.add();
  step.prefill.add(sample.prefill_tokens);
  step.decode.add(sample.decode_tokens);
  step.last_prefill.set(sample.prefill_tokens);
  step.last_decode.set(sample.decode_tokens);
  step.generated.add(sample.generated_tokens);
  step.preemptions.add(sample.preemptions);
  step.tokens.observe(static_cast<double>(sample.prefill_tokens) + sample.decode_tokens);
  step.seconds.observe(sample.seconds);
  if (sample.predicted_seconds > 0) step.predicted.observe(sample.predicted_seconds);
}

void Metrics::on_admitted(const AdmittedSample& sample) {
  KV_CHECK(sample.hit_tokens <= sample.looked_up_tokens, "no more is found than was looked up");
  KV_CHECK(sample.external_tokens <= sample.external_looked_up_tokens, "no more is found than was looked up");
  KV_CHECK(sample.hit_tokens <= sample.prompt_tokens && sample.external_tokens <= sample.prompt_tokens - sample.hit_tokens,
           "no more is found than the prompt has");
  const std::uint64_t found = sample.hit_tokens + sample.external_tokens;
  State::Prompt& prompt = state_->prompt;
  const std::lock_guard lock(state_->prompt_mutex);
  prompt.tokens.add(static_cast<double>(sample.prompt_tokens));
  prompt.computed.add(static_cast<double>(sample.prompt_tokens - found));
  prompt.hit.add(static_cast<double>(sample.hit_tokens));
  prompt.external.add(static_cast<double>(sample.external_tokens));
  prompt.cached.add(static_cast<double>(found));
  prompt.queries.add(static_cast<double>(sample.looked_up_tokens));
  prompt.hits.add(static_cast<double>(sample.hit_tokens));
  prompt.external_queries.add(static_cast<double>(sample.external_looked_up_tokens));
  prompt.external_hits.add(static_cast<double>(sample.external_tokens));
}

void Metrics::on_finished(const FinishedSample& sample) {
  State::Request& request = state_->request;
  request.success[static_cast<std::size_t>(sample.reason)].add();
  if (sample.longest_choice_tokens > 1) {
    request.per_token.observe(sample.decode / static_cast<double>(sample.longest_choice_tokens - 1));
  }
  request.end_to_end.observe(sample.end_to_end);
  request.queue.observe(sample.queue);
  request.prefill.observe(sample.prefill);
  request.decode.observe(sample.decode);
  request.inference.observe(sample.prefill + sample.decode);
  request.prompt_tokens.observe(static_cast<double>(sample.prompt_tokens));
  request.generated.observe(static_cast<double>(sample.generated_tokens));
  request.longest.observe(static_cast<double>(sample.longest_choice_tokens));
  request.max_tokens.observe(static_cast<double>(sample.max_tokens));
  request.n.observe(sample.n);
  request.computed.observe(static_cast<double>(sample.computed_prompt_tokens));
}

void Metrics::on_access(const AccessRecord& record) {
  if (record.lost) counter("kvasir_http_lost_total", {to_string(*record.lost)}).add();
  constexpr std::array<std::string_view, 4> kClasses = {"2xx", "3xx", "4xx", "5xx"};
  if (record.status >= 200 && record.status < 600) {
    counter("kvasir_http_responses_total", {kClasses[static_cast<std::size_t>(record.status / 100 - 2)]}).add();
  }
}

void Metrics::set_load(const LoadSample& load) {
  const LoadSample::Waiting& waiting = load.waiting;
  // vLLM's two words: no room, or held back though there is room.
  const double capacity = static_cast<double>(waiting.memory) + waiting.batch_slots + waiting.token_budget + waiting.step_time;
  const double deferred = static_cast<double>(waiting.priority) + waiting.prefix_in_progress + waiting.paused;
  gauge("vllm:num_requests_running").set(load.running);
  gauge("vllm:num_requests_waiting").set(capacity + deferred);
  gauge("vllm:num_requests_waiting_by_reason", {"capacity"}).set(capacity);
  gauge("vllm:num_requests_waiting_by_reason", {"deferred"}).set(deferred);
  gauge("kvasir_queue_requests", {"memory"}).set(waiting.memory);
  gauge("kvasir_queue_requests", {"batch_slots"}).set(waiting.batch_slots);
  gauge("kvasir_queue_requests", {"token_budget"}).set(waiting.token_budget);
  gauge("kvasir_queue_requests", {"step_time"}).set(waiting.step_time);
  gauge("kvasir_queue_requests", {"priority"}).set(waiting.priority);
  gauge("kvasir_queue_requests", {"prefix_in_progress"}).set(waiting.prefix_in_progress);
  gauge("kvasir_queue_requests", {"paused"}).set(waiting.paused);
  gauge("kvasir_queue_prompt_tokens").set(static_cast<double>(load.queued_prompt_tokens));
  gauge("kvasir_admission_reserved_tokens").set(static_cast<double>(load.reserved_tokens));
}

void Metrics::set_cache(const CacheSample& cache) {
  const auto ratio = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const std::uint64_t blocks = cache.free_blocks + cache.active_blocks + cache.cached_blocks + cache.quarantined_blocks;
  gauge("vllm:kv_cache_usage_perc").set(ratio(cache.active_blocks, blocks));
  gauge("kvasir_kv_blocks", {"ram", "free"}).set(static_cast<double>(cache.free_blocks));
  gauge("kvasir_kv_blocks", {"ram", "active"}).set(static_cast<double>(cache.active_blocks));
  gauge("kvasir_kv_blocks", {"ram", "cached"}).set(static_cast<double>(cache.cached_blocks));
  gauge("kvasir_kv_blocks", {"ram", "pinned"}).set(static_cast<double>(cache.pinned_blocks));
  gauge("kvasir_kv_blocks", {"ram", "quarantined"}).set(static_cast<double>(cache.quarantined_blocks));
  gauge("kvasir_kv_bytes", {"ram"}).set(static_cast<double>(cache.held_bytes));
  gauge("kvasir_kv_capacity_bytes", {"ram"}).set(static_cast<double>(cache.capacity_bytes));
  gauge("kvasir_kv_logical_tokens").set(static_cast<double>(cache.logical_tokens));
  gauge("kvasir_kv_allocated_tokens").set(static_cast<double>(cache.allocated_tokens));
  gauge("kvasir_kv_claimed_tokens").set(static_cast<double>(cache.claimed_tokens));
  gauge("kvasir_kv_block_utilization_ratio").set(ratio(cache.logical_tokens, cache.allocated_tokens));
  gauge("kvasir_kv_fragmentation_ratio").set(ratio(cache.slack_bytes, cache.capacity_bytes));
}

void Metrics::set_cache_groups(std::span<const CacheGroupSample> groups) {
  KV_CHECK(groups.size() <= kCacheGroups, "every cache group has its series");
  const std::lock_guard lock(state_->scrape_mutex);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const CacheGroupSample& now = groups[g];
    const CacheGroupSample before = std::exchange(state_->groups[g], now);
    const std::string group = std::to_string(g);
    const auto blocks = [&](std::string_view state, std::uint64_t count) {
      gauge("kvasir_kv_group_blocks", {group, state}).set(static_cast<double>(count));
    };
    blocks("free", now.free);
    blocks("active", now.active);
    blocks("cached", now.cached);
    blocks("quarantined", now.quarantined);
    blocks("claimed", now.claimed);
    gauge("kvasir_kv_group_superpages", {group}).set(static_cast<double>(now.superpages));
    counter("kvasir_kv_group_left_behind_total", {group}).add(static_cast<double>(now.left_behind - before.left_behind));
    counter("kvasir_kv_group_moved_total", {group}).add(static_cast<double>(now.moved - before.moved));
  }
}

void Metrics::set_http(const HttpStats& now) {
  const std::lock_guard lock(state_->scrape_mutex);
  const HttpStats before = std::exchange(state_->http, now);
  const auto grow = [&](std::string_view name, std::initializer_list<std::string_view> values, std::uint64_t HttpStats::*count) {
    counter(name, values).add(static_cast<double>(now.*count - before.*count));
  };
  gauge("kvasir_http_connections").set(static_cast<double>(now.open_connections));
  gauge("kvasir_http_active_requests").set(static_cast<double>(now.active_requests));
  grow("kvasir_http_connections_total", {}, &HttpStats::accepted);
  grow("kvasir_http_refused_connections_total", {}, &HttpStats::refused_connections);
  grow("kvasir_http_accept_failures_total", {}, &HttpStats::accept_failures);
  grow("kvasir_http_bad_requests_total", {}, &HttpStats::bad_requests);
  grow("kvasir_http_bytes_total", {"in"}, &HttpStats::received_bytes);
  grow("kvasir_http_bytes_total", {"out"}, &HttpStats::sent_bytes);
  grow("kvasir_http_writes_total", {}, &HttpStats::writes);
  if (const auto resident = platform::process_resident_bytes(); resident.ok()) {
    gauge("kvasir_memory_bytes", {"resident"}).set(static_cast<double>(*resident));
  }
}

CounterHandle Metrics::counter(std::string_view name, std::initializer_list<std::string_view> values) {
  return state_->counter(name, values);
}
GaugeHandle Metrics::gauge(std::string_view name, std::initializer_list<std::string_view> values) {
  return state_->gauge(name, values);
}
HistogramHandle Metrics::histogram(std::string_view name, std::initializer_list<std::string_view> values) {
  return state_->histogram(name, values);
}

std::string Metrics::exposition() const {
  std::vector<prometheus::MetricFamily> families;
  {
    const std::lock_guard lock(state_->prompt_mutex);
    families = state_->registry.prometheus().Collect();
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kvasir::server
