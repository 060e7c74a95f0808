#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "engine/engine_state.hpp"
#include "platform/allocated_bytes.hpp"
#include "store/footprint.hpp"

namespace kvasir::engine {
namespace {

// Replaces every "0 = ..." by what it stands for.
Result<PoolConfig> resolve(PoolConfig config, const artifact::ModelGeometry& geometry) {
  KV_TRY(validate(config));
  if (config.max_model_len == 0) config.max_model_len = geometry.context;
  if (config.max_model_len == 0 || config.max_model_len > geometry.context) {
    return Error{ErrorCode::bad_input, fmt::format("max-model-len is {}, valid: 1 to {} (the model's context)",
                                                   config.max_model_len, geometry.context)};
  }
  if (config.max_sequences == 0) config.max_sequences = std::min(kDefaultMaxSequences, config.max_batched_tokens);
  if (config.logits_rows == 0) config.logits_rows = config.max_sequences;
  if (config.kv_cache_bytes == 0) {
    const format::KvGeometry kv = geometry.kv_geometry(config.kv_format, config.block_tokens);
    KV_ASSIGN(config.kv_cache_bytes, store::capacity_for_rows(kv, config.max_model_len));
  }
  config.poison_free = config.poison_free || store::kPoisonByDefault;
  return config;
}

store::KvStoreConfig store_config(const PoolConfig& config, const artifact::ModelGeometry& geometry) {
  store::KvStoreConfig out;
  out.geometry = geometry.kv_geometry(config.kv_format, config.block_tokens);
  out.capacity_bytes = config.kv_cache_bytes;
  // Blocks are handed out lowest id first, so memory is taken as requests need it (submit); not so when shuffled.
  out.populate_at_start = config.block_order_seed != 0;
  out.poison_free = config.poison_free;
  return out;
}

core::CoreConfig core_config(const PoolConfig& config, const store::KvStore& store) {
  core::CoreConfig out;
  for (std::uint32_t group = 0; group < store.groups(); ++group) {
    out.cache.groups.push_back({.block_tokens = config.block_tokens, .blocks = store.blocks(group)});
  }
  out.cache.max_sequences = config.max_sequences;
  out.cache.max_sequence_rows = config.max_model_len;
  if (config.block_order_seed != 0) out.cache.allocation_order = config.block_order_seed;
  out.limits.max_num_seqs = config.max_sequences;
  out.limits.max_num_batched_tokens = config.max_batched_tokens;
  out.limits.itl_target_s = config.itl_target_s;
  out.max_requests = config.max_queued;
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

// What was allocated between two readings; `computed` where it cannot be measured.
std::uint64_t measured(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after,
                       std::uint64_t computed) {
  return before && after ? *after - *before : computed;
}

MemoryLine cache_line(const store::KvStore& store) {
  std::string how;
  for (const store::GroupPlan& group : store.plan().groups) {
    if (!how.empty()) how += " + ";
    how += fmt::format("{} blocks x {} B", group.blocks, group.layout.block_bytes());
  }
  std::uint64_t computed = 0;
  for (const store::GroupPlan& group : store.plan().groups) computed += group.bytes();
  return {"cache", computed, store.arena().size(), how};
}

MemoryLine slack_line(const store::KvStore& store) {
  std::uint64_t blocks = 0;
  for (std::uint32_t group = 0; group < store.groups(); ++group) {
    blocks += std::uint64_t{store.blocks(group)} * store.view(group).layout.block_bytes();
  }
  return {"slack", store.plan().slack_bytes, store.plan().capacity_bytes - blocks, "what whole blocks leave of the cache"};
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const model::Model> model,
                                               std::shared_ptr<const text::Tokenizer> tokenizer,
                                               const PoolConfig& given) {
  KV_CHECK(model != nullptr, "an engine has a model");
  const artifact::ModelGeometry& geometry = model->geometry();
  KV_ASSIGN(const PoolConfig config, resolve(given, geometry));

  KV_ASSIGN(store::KvStore store, store::KvStore::create(store_config(config, geometry)));
  const core::CoreConfig life = core_config(config, store);
  const auto before_metadata = platform::allocated_bytes();
  KV_ASSIGN(core::Core core, core::Core::create(life));
  StepBatch batch(core, store);
  const auto after_metadata = platform::allocated_bytes();

  auto state = std::make_unique<State>(config, model, std::move(tokenizer), std::move(store), std::move(core),
                                       std::move(batch));
  const std::uint64_t workspace =
      model::Forward::workspace_bytes(geometry, model->options().compute, forward_limits(config), config.threads) +
      Sampler::bytes(geometry.vocabulary, config.threads);
  const std::uint64_t metadata = core::Core::metadata_bytes(life) + StepBatch::bytes(state->core.cache());
  state->memory = {
      {"weights", model->footprint().total(), model->allocated_bytes(), "packed for the kernels"},
      cache_line(state->store),
      {"workspace", workspace,
       measured(state->allocated_before_workspace, state->allocated_after_workspace, workspace),
       fmt::format("{} rows a step, {} rows of logits", config.max_batched_tokens, config.logits_rows)},
      {"metadata", metadata, measured(before_metadata, after_metadata, metadata),
       fmt::format("block pool, tables of {} sequences, {} requests", config.max_sequences, config.max_queued)},
      slack_line(state->store),
  };
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::State::State(const PoolConfig& pool_config, std::shared_ptr<const model::Model> shared_model,
                     std::shared_ptr<const text::Tokenizer> shared_tokenizer, store::KvStore kv_store, core::Core life,
                     StepBatch step_batch)
    : config(pool_config), model(std::move(shared_model)), tokenizer(std::move(shared_tokenizer)),
      pool(config.threads), store(std::move(kv_store)), core(std::move(life)), batch(std::move(step_batch)),
      allocated_before_workspace(platform::allocated_bytes()), forward(model, forward_limits(config), pool),
      sampler(model->geometry().vocabulary, config.threads, model->options().isa),
      allocated_after_workspace(platform::allocated_bytes()), live_blocks(store.groups(), 0), freed(store.groups()) {
  live.reserve(config.max_queued);
  ended.reserve(config.max_queued);
  finished.reserve(config.max_queued);
  rows.reserve(config.max_batched_tokens);   // scored prompts have one a token
  row_requests.reserve(config.max_batched_tokens);
  results.reserve(config.max_sequences);
  for (std::uint32_t group = 0; config.poison_free && group < groups(); ++group) {
    freed[group].reserve(store.blocks(group));
  }
}

}  // namespace kvasir::engine
