#include "server/metrics/metric_table.hpp"

#include <utility>

namespace kvasir::server {
namespace {

using Series = std::vector<std::vector<std::string>>;
using Names = std::vector<std::string>;

constexpr MetricKind kCounter = MetricKind::counter, kGauge = MetricKind::gauge;

MetricInfo plain(MetricKind kind, std::string name, std::string help) {
  return {std::move(name), kind, std::move(help), {}, {{}}};
}
MetricInfo counter(std::string name, std::string help) { return plain(kCounter, std::move(name), std::move(help)); }
MetricInfo gauge(std::string name, std::string help) { return plain(kGauge, std::move(name), std::move(help)); }

// One label with a fixed set of values.
MetricInfo split(MetricKind kind, std::string name, std::string help, std::string label, const Names& values) {
  MetricInfo info{std::move(name), kind, std::move(help), {std::move(label)}, {}};
  for (const std::string& value : values) info.series.push_back({value});
  return info;
}

MetricInfo histogram(std::string name, std::string help, Buckets buckets) {
  return {std::move(name), MetricKind::histogram, std::move(help), {}, {{}}, buckets};
}

MetricInfo histograms(std::string name, std::string help, Buckets buckets, Names labels, Series series) {
  return {std::move(name), MetricKind::histogram, std::move(help), std::move(labels), std::move(series), buckets};
}

Series cross(const Names& first, const Names& second) {
  Series series;
  for (const std::string& a : first) {
    for (const std::string& b : second) series.push_back({a, b});
  }
  return series;
}

const Names kGroups = {"0", "1", "2", "3", "4", "5", "6", "7"};
const Names kTiers = {"ram", "disk", "remote"};
const Series kUp = {{"disk", "ram"}, {"remote", "ram"}, {"remote", "disk"}};
const Series kDown = {{"ram", "disk"}, {"ram", "remote"}, {"disk", "remote"}};
const Series kMoves = {{"disk", "ram"}, {"remote", "ram"}, {"remote", "disk"},
                       {"ram", "disk"}, {"ram", "remote"}, {"disk", "remote"}};
const Names kTransfers = {"GPU_to_CPU", "CPU_to_GPU"};

void add_vllm_gauges(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      gauge("vllm:num_requests_running", "Requests in the running batch."),
      gauge("vllm:num_requests_waiting", "Requests that wait to be scheduled."),
      split(kGauge, "vllm:num_requests_waiting_by_reason", "Waiting requests by reason.", "reason", {"capacity", "deferred"}),
      gauge("vllm:kv_cache_usage_perc", "Share of the cache's blocks that are in use; 1 is all."),
      split(kGauge, "vllm:engine_sleep_state", "1 for the state the engine is in.", "sleep_state",
            {"awake", "weights_offloaded", "discard_all"}),
      MetricInfo{"vllm:lora_requests_info", kGauge, "Adapters in use; the value is a time.",
                 {"max_lora", "running_lora_adapters", "waiting_lora_adapters"}, {{"0", "", ""}}},
  });
}

void add_vllm_counters(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      counter("vllm:prompt_tokens_total", "Prompt tokens of admitted requests, each once."),
      split(kCounter, "vllm:prompt_tokens_by_source_total", "Prompt tokens by where their KV came from.", "source",
            {"local_compute", "local_cache_hit", "external_kv_transfer"}),
      counter("vllm:prompt_tokens_cached_total", "Prompt tokens whose KV was found, here or in another tier."),
      counter("vllm:prompt_tokens_recomputed_total", "Cached prompt tokens that were computed all the same."),
      counter("vllm:generation_tokens_total", "Generated tokens."),
      split(kCounter, "vllm:request_success_total", "Finished requests.", "finished_reason",
            {"stop", "length", "abort", "error", "repetition"}),
      counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache, once a request."),
      counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache."),
      counter("vllm:external_prefix_cache_queries_total", "Tokens looked up in other tiers."),
      counter("vllm:external_prefix_cache_hits_total", "Tokens found in other tiers."),
      counter("vllm:num_preemptions_total", "Running requests that were put back into the queue."),
      counter("vllm:corrupted_requests_total", "Requests whose logits held a NaN."),
      split(kCounter, "vllm:admission_rejections_total", "Requests refused at admission.", "reason",
            {"max_num_queued_reqs", "max_num_queued_tokens"}),
      counter("vllm:mm_cache_queries_total", "Look-ups in the multi-modal cache."),
      counter("vllm:mm_cache_hits_total", "Hits in the multi-modal cache."),
      split(kCounter, "vllm:kv_offload_total_bytes_total", "KV bytes moved between tiers.", "transfer_type", kTransfers),
      split(kCounter, "vllm:kv_offload_total_time_total", "Seconds spent moving KV.", "transfer_type", kTransfers),
      counter("vllm:spec_decode_num_drafts_total", "Speculative drafts."),
      counter("vllm:spec_decode_num_draft_tokens_total", "Tokens in drafts."),
      counter("vllm:spec_decode_num_accepted_tokens_total", "Draft tokens that were accepted."),
      split(kCounter, "vllm:spec_decode_num_accepted_tokens_per_pos_total", "Accepted tokens by position in the draft.",
            "position", {"0"}),
  });
}

void add_vllm_histograms(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", Buckets::first_token),
      histogram("vllm:inter_token_latency_seconds", "Between a request's tokens.", Buckets::token),
      histogram("vllm:request_time_per_output_token_seconds", "A request's mean time a token, after its first.",
                Buckets::token),
      histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", Buckets::phase),
      histogram("vllm:request_queue_time_seconds", "From queued to last scheduled.", Buckets::phase),
      histogram("vllm:request_prefill_time_seconds", "From scheduled to the first token.", Buckets::phase),
      histogram("vllm:request_decode_time_seconds", "From the first to the last token.", Buckets::phase),
      histogram("vllm:request_inference_time_seconds", "From scheduled to the last token.", Buckets::phase),
      histogram("vllm:request_prompt_tokens", "Prompt tokens a request.", Buckets::tokens),
      histogram("vllm:request_generation_tokens", "Generated tokens a request.", Buckets::tokens),
      histogram("vllm:request_max_num_generation_tokens", "Generated tokens of a request's longest choice.", Buckets::tokens),
      histogram("vllm:request_params_max_tokens", "max_tokens as asked.", Buckets::tokens),
      histogram("vllm:request_params_n", "n as asked.", Buckets::choices),
      histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens computed, not found, a request.", Buckets::tokens),
      histogram("vllm:iteration_tokens_total", "Tokens a step.", Buckets::iteration),
      histogram("vllm:kv_block_lifetime_seconds", "From a block's allocation to its eviction, sampled.", Buckets::residency),
      histogram("vllm:kv_block_idle_before_evict_seconds", "From a block's last use to its eviction, sampled.",
                Buckets::residency),
      histogram("vllm:kv_block_reuse_gap_seconds", "Between uses of a block, sampled.", Buckets::residency),
      histograms("vllm:kv_offload_size", "Bytes a transfer.", Buckets::transfer, {"transfer_type"},
                 {{"GPU_to_CPU"}, {"CPU_to_GPU"}}),
  });
}

void add_cache_rows(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      MetricInfo{"kvasir_kv_blocks", kGauge, "Blocks by tier and state.", {"tier", "state"},
                 cross(kTiers, {"free", "active", "cached", "pinned", "quarantined"})},
      split(kGauge, "kvasir_kv_bytes", "Bytes of KV held, by tier.", "tier", kTiers),
      split(kGauge, "kvasir_kv_capacity_bytes", "Bytes of KV a tier can hold.", "tier", kTiers),
      MetricInfo{"kvasir_kv_group_blocks", kGauge, "Blocks by cache group and state; a group's number is its place in /kv/stats.",
                 {"group", "state"}, cross(kGroups, {"free", "active", "cached", "quarantined", "claimed"})},
      split(kGauge, "kvasir_kv_group_superpages", "Superpages that a cache group has sliced.", "group", kGroups),
      split(kCounter, "kvasir_kv_group_left_behind_total", "Blocks let go because a window had passed them.", "group", kGroups),
      split(kCounter, "kvasir_kv_group_moved_total", "Blocks moved to empty a superpage.", "group", kGroups),
      gauge("kvasir_kv_logical_tokens", "Tokens whose rows requests hold, shared ones once a request."),
      gauge("kvasir_kv_allocated_tokens", "Token slots of the blocks in use."),
      gauge("kvasir_kv_claimed_tokens", "Token slots that admitted requests may still take."),
      gauge("kvasir_kv_block_utilization_ratio", "Rows in use over the slots of the blocks in use."),
      gauge("kvasir_kv_fragmentation_ratio", "Share of the cache's bytes that no block can use."),
      counter("kvasir_kv_alloc_failures_total", "Allocations that found no block."),
      MetricInfo{"kvasir_kv_evictions_total", kCounter, "Blocks evicted.", {"tier", "reason"},
                 cross(kTiers, {"capacity", "ttl", "quota", "reset", "corrupt"})},
      MetricInfo{"kvasir_kv_promotions_total", kCounter, "Blocks moved to a faster tier.", {"from", "to"}, kUp},
      MetricInfo{"kvasir_kv_demotions_total", kCounter, "Blocks moved to a slower tier.", {"from", "to"}, kDown},
      MetricInfo{"kvasir_kv_transfer_bytes_total", kCounter, "Bytes moved between tiers.", {"from", "to"}, kMoves},
      histograms("kvasir_kv_transfer_seconds", "Time a transfer.", Buckets::io, {"from", "to"}, kMoves),
      histograms("kvasir_kv_lookup_seconds", "Time a look-up, by tier.", Buckets::io, {"tier"},
                 {{"ram"}, {"disk"}, {"remote"}}),
      MetricInfo{"kvasir_kv_tier_errors_total", kCounter, "Failed reads and writes; each was a miss.", {"tier", "kind"},
                 cross(kTiers, {"io", "timeout", "checksum", "mismatch"})},
      split(kGauge, "kvasir_kv_tier_up", "1 where a tier answers.", "tier", kTiers),
      split(kCounter, "kvasir_kv_codec_bytes_total", "Bytes that went through a codec.", "side", {"in", "out"}),
      histograms("kvasir_kv_codec_seconds", "Time a codec call.", Buckets::io, {"op"}, {{"encode"}, {"decode"}}),
      gauge("kvasir_kv_prefix_tree_nodes", "Nodes of the prefix tree."),
      histogram("kvasir_kv_prefix_tree_depth", "Depth of a match in the prefix tree, in blocks.", Buckets::depth),
      counter("kvasir_kv_copy_on_write_total", "Blocks copied because they were shared."),
      counter("kvasir_kv_forks_total", "Sequences that began as a fork of another."),
      split(kCounter, "kvasir_kv_events_published_total", "KV events.", "type",
            {"BlockStored", "BlockRemoved", "AllBlocksCleared"}),
      counter("kvasir_kv_events_dropped_total", "KV events a subscriber was too slow for."),
      split(kCounter, "kvasir_kv_redis_commands_total", "Commands to the remote store.", "result", {"ok", "error", "timeout"}),
      counter("kvasir_kv_redis_moved_total", "Redirections of the remote store."),
  });
}

void add_engine_rows(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      split(kCounter, "kvasir_recomputed_tokens_total", "Tokens computed a second time, by cause.", "cause",
            {"preemption", "eviction", "tier_error", "faster_than_load"}),
      split(kGauge, "kvasir_memory_bytes", "Memory by component.", "component",
            {"weights", "cache", "workspace", "metadata", "slack", "resident"}),
      split(kGauge, "kvasir_batch_tokens", "Rows of the last step.", "kind", {"prefill", "decode"}),
      split(kCounter, "kvasir_step_tokens_total", "Rows computed.", "kind", {"prefill", "decode"}),
      counter("kvasir_steps_total", "Steps."),
      histogram("kvasir_step_seconds", "Time a step.", Buckets::step),
      histogram("kvasir_step_predicted_seconds", "Time a step as the scheduler predicted it.", Buckets::step),
      split(kGauge, "kvasir_queue_requests", "Waiting requests by what they wait for.", "reason",
            {"memory", "batch_slots", "token_budget", "step_time", "priority", "prefix_in_progress", "paused"}),
      gauge("kvasir_queue_prompt_tokens", "Prompt tokens of waiting requests."),
      gauge("kvasir_admission_reserved_tokens", "Tokens reserved at admission, before the request is queued."),
      split(kCounter, "kvasir_refusals_total", "Requests refused, by reason.", "reason",
            {"queue_requests", "queue_tokens", "tenant_limit", "never_fits", "context_length", "bad_request", "unauthorized",
             "forbidden", "loading", "draining"}),
      split(kCounter, "kvasir_cancelled_requests_total", "Requests whose client left, by where they were.", "stage",
            {"queued", "prefill", "decode"}),
      gauge("kvasir_ready", "1 where /health/ready says 200."),
      gauge("kvasir_load_progress_ratio", "How much of the model is loaded."),
  });
}

void add_http_rows(std::vector<MetricInfo>& table) {
  table.insert(table.end(), {
      gauge("kvasir_http_connections", "Open connections."),
      gauge("kvasir_http_active_requests", "Requests that are being answered."),
      counter("kvasir_http_connections_total", "Accepted connections."),
      counter("kvasir_http_refused_connections_total", "Connections over the limit."),
      counter("kvasir_http_accept_failures_total", "Times that descriptors or memory ran out."),
      split(kCounter, "kvasir_http_responses_total", "Answers by class of status.", "code", {"2xx", "3xx", "4xx", "5xx"}),
      counter("kvasir_http_bad_requests_total", "Requests that were malformed, too large or too slow."),
      split(kCounter, "kvasir_http_lost_total", "Answers whose peer was lost, by reason.", "reason",
            {"peer_closed", "slow_reader", "stalled", "flooded", "shut_down"}),
      split(kCounter, "kvasir_http_bytes_total", "Bytes through sockets.", "direction", {"in", "out"}),
      counter("kvasir_http_writes_total", "System calls that wrote these bytes."),
  });
}

std::vector<MetricInfo> build_table() {
  std::vector<MetricInfo> table;
  add_vllm_gauges(table);
  add_vllm_counters(table);
  add_vllm_histograms(table);
  add_cache_rows(table);
  add_engine_rows(table);
  add_http_rows(table);
  return table;
}

std::vector<double> one_two_five(std::uint32_t max) {
  std::vector<double> bounds;
  for (std::uint64_t power = 1; power <= max; power *= 10) {
    for (const std::uint64_t digit : {1, 2, 5}) {
      if (digit * power <= max) bounds.push_back(static_cast<double>(digit * power));
    }
  }
  return bounds;
}

std::vector<double> powers_of_two(double from, double to) {
  std::vector<double> bounds;
  for (double bound = from; bound <= to; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

const std::vector<MetricInfo>& metric_table() {
  static const std::vector<MetricInfo> kTable = build_table();
  return kTable;
}

std::vector<double> bucket_bounds(Buckets buckets, std::uint32_t max_model_len) {
  switch (buckets) {
    case Buckets::none: return {};
    case Buckets::first_token:
      return {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560};
    case Buckets::token:
      return {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
    case Buckets::phase:
      return {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
    case Buckets::tokens: return one_two_five(max_model_len);
    case Buckets::choices: return {1, 2, 5, 10, 20};
    case Buckets::iteration: {
      std::vector<double> bounds = powers_of_two(8, 16384);
      bounds.insert(bounds.begin(), 1);
      return bounds;
    }
    case Buckets::residency:
      return {.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800};
    case Buckets::transfer: return {1e6, 5e6, 10e6, 20e6, 40e6, 60e6, 80e6, 100e6, 150e6, 200e6};
    case Buckets::step:
      return {.0001, .0002, .0005, .001, .002, .005, .01, .02, .03, .04, .05, .06, .08, .1, .2, .5, 1, 2, 5};
    case Buckets::io: return {.0001, .001, .01, .1, 1, 10};
    case Buckets::depth: return powers_of_two(1, 4096);
  }
  return {};
}

}  // namespace kvasir::server
