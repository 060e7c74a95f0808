#include "server/app/metrics_feed.hpp"

#include <fmt/format.h>

#include <array>

namespace kvasir::server {
namespace {

constexpr std::array<std::string_view, 5> kComponents = {"weights", "cache", "workspace", "metadata", "slack"};

LoadSample load_sample(const LoopStats& loop) {
  LoadSample load;
  load.running = loop.running;
  const auto waits = [&loop](engine::QueueReason reason) {
    return loop.waiting_by_reason[static_cast<std::size_t>(reason)];
  };
  load.waiting.memory = waits(engine::QueueReason::blocks);
  load.waiting.batch_slots = waits(engine::QueueReason::sequence_limit);
  // Those without a reason wait for the next step.
  load.waiting.token_budget = waits(engine::QueueReason::token_budget) + waits(engine::QueueReason::none);
  load.waiting.step_time = waits(engine::QueueReason::step_time);
  load.queued_prompt_tokens = loop.queued_tokens;
  return load;
}

CacheSample cache_sample(const engine::CacheAccounting& cache) {
  CacheSample sample;
  sample.active_blocks = cache.active_blocks;
  sample.cached_blocks = cache.cached_blocks;
  sample.free_blocks = cache.free_blocks;
  sample.quarantined_blocks = cache.quarantined_blocks;
  sample.logical_tokens = cache.live_rows;
  sample.held_bytes = cache.active_bytes + cache.cached_bytes;
  sample.capacity_bytes = cache.total_bytes;
  sample.slack_bytes = cache.slack_bytes;
  sample.allocated_tokens = cache.allocated_rows;
  sample.claimed_tokens = cache.claimed_rows;
  return sample;
}

std::vector<CacheGroupSample> group_samples(std::span<const engine::GroupAccounting> groups) {
  std::vector<CacheGroupSample> samples;
  for (const engine::GroupAccounting& g : groups)
    samples.push_back({g.free, g.active, g.cached, g.quarantined, g.claimed, g.superpages, g.left_behind, g.moved});
  return samples;
}

std::string_view metric_reason(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::queue_full_requests:
      return "queue_requests";
    case RefusalReason::queue_full_tokens:
      return "queue_tokens";
    case RefusalReason::never_fits:
      return "never_fits";
    case RefusalReason::bad_request:
      return "bad_request";
    case RefusalReason::not_ready:
      return "loading";
    case RefusalReason::draining:
    case RefusalReason::loop_failed:
      break;
  }
  return "draining";
}

}  // namespace

MetricsFeed::MetricsFeed(std::unique_ptr<Metrics> metrics, const engine::EffectiveSettings& settings,
                         std::span<const engine::MemoryLine> memory)
    : metrics_(std::move(metrics)), settings_(settings),
      first_token_(metrics_->histogram("vllm:time_to_first_token_seconds")),
      inter_token_(metrics_->histogram("vllm:inter_token_latency_seconds")) {
  for (const engine::MemoryLine& line : memory) {
    for (const std::string_view component : kComponents) {
      if (line.name == component)
        metrics_->gauge("kvasir_memory_bytes", {component}).set(static_cast<double>(line.real));
    }
  }
  metrics_->gauge("kvasir_load_progress_ratio").set(1);
}

void MetricsFeed::on_step(const engine::StepReport& step, std::uint32_t generated_tokens) {
  StepSample sample;
  sample.prefill_tokens = step.prefill_tokens;
  sample.decode_tokens = step.decode_tokens;
  sample.generated_tokens = generated_tokens;
  sample.seconds = step.total_s;
  sample.predicted_seconds = step.predicted_s;
  metrics_->on_step(sample);
  flush();
}

void MetricsFeed::flush() {
  if (!first_token_s_.empty()) first_token_.observe(first_token_s_);
  if (!inter_token_s_.empty()) inter_token_.observe(inter_token_s_);
  first_token_s_.clear();
  inter_token_s_.clear();
}

void MetricsFeed::on_access(const AccessRecord& record) {
  metrics_->on_access(record);
  if (record.status == 401) refused("unauthorized");
  if (record.status == 403) refused("forbidden");
}

void MetricsFeed::refused(RefusalReason reason) {
  refused(metric_reason(reason));
  if (reason == RefusalReason::queue_full_requests) {
    metrics_->counter("vllm:admission_rejections_total", {"max_num_queued_reqs"}).add();
  } else if (reason == RefusalReason::queue_full_tokens) {
    metrics_->counter("vllm:admission_rejections_total", {"max_num_queued_tokens"}).add();
  }
}

void MetricsFeed::refused(std::string_view reason) { metrics_->counter("kvasir_refusals_total", {reason}).add(); }

void MetricsFeed::cancelled(std::string_view stage) {
  metrics_->counter("kvasir_cancelled_requests_total", {stage}).add();
}

std::string MetricsFeed::scrape(const LoopStats& loop, const HttpStats& http, bool ready) {
  metrics_->set_load(load_sample(loop));
  metrics_->set_cache(cache_sample(loop.cache));
  metrics_->set_cache_groups(group_samples(loop.cache_groups()));
  metrics_->set_http(http);
  metrics_->gauge("kvasir_ready").set(ready ? 1 : 0);
  return metrics_->exposition();
}

std::string loading_metrics(std::string_view model_name, double ratio) {
  std::string label;
  for (const char c : model_name) {
    if (c == '\\' || c == '"') label += '\\';
    label += c == '\n' ? ' ' : c;
  }
  return fmt::format(
      "# TYPE kvasir_ready gauge\nkvasir_ready{{model_name=\"{0}\",engine=\"0\"}} 0\n"
      "# TYPE kvasir_load_progress_ratio gauge\nkvasir_load_progress_ratio{{model_name=\"{0}\",engine=\"0\"}} {1}\n",
      label, ratio);
}

}  // namespace kvasir::server
