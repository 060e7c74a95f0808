#include "engine/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "cache/footprint.hpp"
#include "engine/pool_plan.hpp"
#include "engine/sampler.hpp"
#include "engine/step_batch.hpp"
#include "store/kv_store.hpp"

namespace kvasir::engine {

Result<PoolConfig> resolve(PoolConfig config, const artifact::ModelGeometry& geometry, const format::KvGeometry& kv) {
  KV_TRY(validate(config));
  if (config.max_model_len == 0) config.max_model_len = geometry.context;
  if (config.max_model_len == 0 || config.max_model_len > geometry.context) {
    return Error{ErrorCode::bad_input, fmt::format("max-model-len is {}, valid: 1 to {} (the model's context)",
                                                   config.max_model_len, geometry.context)};
  }
  if (config.context_keep && *config.context_keep + std::uint64_t{2} > config.max_model_len) {
    return Error{ErrorCode::bad_input, fmt::format("context-keep is {}, valid: 0 to {} (max-model-len - 2)", *config.context_keep,
                                                   std::max(config.max_model_len, 2u) - 2)};
  }
  if (config.max_sequences == 0) config.max_sequences = std::min(kDefaultMaxSequences, config.max_batched_tokens);
  if (config.max_queued == 0) config.max_queued = config.max_sequences + kDefaultMaxWaiting;
  if (config.logits_rows == 0) config.logits_rows = config.max_sequences;
  if (config.kv_cache_bytes == 0) {
    KV_ASSIGN(config.kv_cache_bytes, store::capacity_for_rows(kv, config.max_model_len, config.max_batched_tokens));
  }
  config.poison_free = config.poison_free || store::kPoisonByDefault;
  return config;
}

core::CoreConfig core_config(const PoolConfig& config, const store::StorePlan& store) {
  core::CoreConfig out;
  for (const store::GroupPlan& group : store.groups) {
    out.cache.groups.push_back({.block_tokens = group.layout.block_tokens(),
                                .blocks = group.blocks,
                                .reach = group.reach,
                                .blocks_per_superpage = store.groups.size() > 1 ? group.blocks_per_superpage : 0});
  }
  out.cache.max_sequences = config.max_sequences;
  out.cache.max_sequence_rows = config.max_model_len;
  if (config.block_order_seed != 0) out.cache.allocation_order = config.block_order_seed;
  out.limits.max_num_seqs = config.max_sequences;
  out.limits.max_num_batched_tokens = config.max_batched_tokens;
  out.limits.itl_target_s = config.itl_target_s;
  out.max_requests = config.max_queued;
  out.context_keep = config.context_keep;
  out.policy.policy = config.policy;
  out.queue = {config.max_queued_requests, config.max_queued_tokens};
  return out;
}

model::ForwardLimits forward_limits(const PoolConfig& config) {
  return {.rows = config.max_batched_tokens,
          .sequences = config.max_sequences,
          .logits_rows = config.logits_rows,
          .context = config.max_model_len};
}

namespace {

// REQUIRES: a resolved configuration.
EngineFootprint add_up(const artifact::ModelGeometry& geometry, store::StorePlan store, const PoolConfig& config) {
  EngineFootprint out;
  out.config = config;
  out.store = std::move(store);
  const core::CoreConfig life = core_config(config, out.store);
  const model::ForwardLimits limits = forward_limits(config);
  out.logits = model::Forward::logits_bytes(geometry, limits);
  out.activations = model::Forward::workspace_bytes(geometry, limits, config.threads) - out.logits;
  out.sampler = Sampler::bytes(geometry.vocabulary, config.threads);
  out.metadata_of_core = core::Core::metadata_bytes(life);
  out.page_tables = StepBatch::list_bytes(life.cache.groups.size(), config.max_sequences);
  for (const cache::GroupConfig& group : life.cache.groups) {
    out.page_tables += cache::page_table_bytes(
        config.max_sequences, cache::table_capacity(config.max_model_len, group.reach, config.max_batched_tokens,
                                                    group.block_tokens, group.blocks));
  }
  return out;
}

}  // namespace

Result<EngineFootprint> engine_footprint(const artifact::ModelGeometry& geometry, const format::KvGeometry& kv,
                                         const PoolConfig& given) {
  KV_ASSIGN(const PoolConfig config, resolve(given, geometry, kv));
  KV_ASSIGN(store::StorePlan store, store::plan_store(kv, config.kv_cache_bytes));
  return add_up(geometry, std::move(store), config);
}

Result<EngineFootprint> engine_footprint(const artifact::ModelGeometry& geometry, store::StorePlan store,
                                         const PoolConfig& given) {
  PoolConfig config = given;
  config.kv_cache_bytes = store.capacity_bytes;
  KV_ASSIGN(config, resolve(config, geometry, {}));
  return add_up(geometry, std::move(store), config);
}

}  // namespace kvasir::engine
