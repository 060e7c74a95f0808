#include "server/metrics/metric_table.hpp"

namespace kvasir::server {

const std::vector<TelemetryItem>& telemetry_items() {
  static const std::vector<TelemetryItem> kItems = {
      {"logical tokens", "kvasir_kv_logical_tokens"},
      {"allocated tokens", "kvasir_kv_allocated_tokens"},
      {"block utilization", "kvasir_kv_block_utilization_ratio"},
      {"cache usage", "vllm:kv_cache_usage_perc"},
      {"prefix hit rate", "rate(vllm:prefix_cache_hits_total[1m]) / rate(vllm:prefix_cache_queries_total[1m])"},
      {"evictions", "rate(kvasir_kv_evictions_total[1m])"},
      {"preemptions", "rate(vllm:num_preemptions_total[1m])"},
      {"recomputed tokens by cause", "rate(kvasir_recomputed_tokens_total[1m])"},
      {"memory by component", "kvasir_memory_bytes"},
      {"batch tokens", "kvasir_batch_tokens"},
      {"queue by reason", "kvasir_queue_requests"},
      {"TTFT p95", "histogram_quantile(0.95, rate(vllm:time_to_first_token_seconds_bucket[1m]))"},
      {"ITL p99", "histogram_quantile(0.99, rate(vllm:inter_token_latency_seconds_bucket[1m]))"},
      {"output tokens/s", "rate(vllm:generation_tokens_total[1m])"},
      {"refusals by reason", "rate(kvasir_refusals_total[1m])"},
      {"lost clients by stage", "rate(kvasir_cancelled_requests_total[1m])"},
      {"transfer bandwidth by tier", "rate(kvasir_kv_transfer_bytes_total[1m])"},
      {"step time p99", "histogram_quantile(0.99, rate(kvasir_step_seconds_bucket[1m]))"},
  };
  return kItems;
}

}  // namespace kvasir::server
