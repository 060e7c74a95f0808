#include <fmt/format.h>

#include "base/units.hpp"
#include "engine/engine_state.hpp"
#include "engine/footprint.hpp"
#include "engine/pool_plan.hpp"
#include "platform/allocated_bytes.hpp"

namespace kvasir::engine {
namespace {

store::KvStoreConfig store_config(const PoolConfig& config, const artifact::ModelGeometry& geometry) {
  store::KvStoreConfig out;
  out.geometry = geometry.kv_geometry(config.kv_format, config.block_tokens);
  out.capacity_bytes = config.kv_cache_bytes;
  // Blocks are handed out lowest id first, so memory is taken as requests need it (submit); not so when shuffled.
  out.populate_at_start = config.block_order_seed != 0;
  out.poison_free = config.poison_free;
  return out;
}

// What was allocated between two readings; `computed` where it cannot be measured.
std::uint64_t measured(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after,
                       std::uint64_t computed) {
  return before && after ? *after - *before : computed;
}

MemoryLine cache_line(const store::KvStore& store) {
  const store::StorePlan& plan = store.plan();
  std::string how;
  for (const store::GroupPlan& group : plan.groups) {
    if (!how.empty()) how += " or ";
    how += fmt::format("{} blocks x {} B", group.blocks_per_superpage, group.layout.block_bytes());
  }
  if (plan.groups.size() > 1) how = fmt::format("{} superpages of {}", plan.superpages, how);
  return {"cache", plan.arena_bytes, store.arena().size(), how};
}

MemoryLine slack_line(const store::KvStore& store) {
  return {"slack", store.plan().slack_bytes, store.plan().capacity_bytes - store.arena().size(), "what whole blocks leave of the cache"};
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const model::Model> model,
                                               std::shared_ptr<const text::Tokenizer> tokenizer,
                                               const PoolConfig& given) {
  KV_CHECK(model != nullptr, "an engine has a model");
  const artifact::ModelGeometry& geometry = model->geometry();
  KV_ASSIGN(const EngineFootprint footprint,
            engine_footprint(geometry, geometry.kv_geometry(given.kv_format, given.block_tokens), given));
  const PoolConfig& config = footprint.config;

  KV_ASSIGN(store::KvStore store, store::KvStore::create(store_config(config, geometry)));
  const core::CoreConfig life = core_config(config, store.plan());
  const auto before_metadata = platform::allocated_bytes();
  KV_ASSIGN(core::Core core, core::Core::create(life));
  StepBatch batch(core, store);
  const auto after_metadata = platform::allocated_bytes();

  auto state = std::make_unique<State>(config, model, std::move(tokenizer), std::move(store), std::move(core),
                                       std::move(batch));
  const std::uint64_t workspace = footprint.workspace(), metadata = footprint.metadata();
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
      allocated_after_workspace(platform::allocated_bytes()), live_blocks(store.groups(), 0), active(store.groups()),
      whole(core.cache().budget()) {
  live.reserve(config.max_queued);
  ended.reserve(config.max_queued);
  finished.reserve(config.max_queued);
  rows.reserve(config.max_batched_tokens);   // scored prompts have one a token
  row_requests.reserve(config.max_batched_tokens);
  results.reserve(config.max_sequences);
  for (std::uint32_t group = 0; config.poison_free && group < groups(); ++group) {
    active[group].reserve(store.blocks(group));
  }
}

}  // namespace kvasir::engine
