#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/footprint.hpp"
#include "engine/engine_state.hpp"
#include "platform/clock.hpp"

namespace kvasir::engine {
namespace {

// With a shifting context an answer ends here at the latest.
constexpr std::uint32_t kMostShiftedAnswer = 1u << 20;

bool shifts(const GenerateRequest& request, const PoolConfig& config) { return config.context_keep && request.beam.width <= 1; }

// The output limit of a request: its own, else the default, else as far as context and cache reach; beyond the context only
// where it shifts. An answer that meets it ends with `length`.
std::uint32_t output_limit(const GenerateRequest& request, const PoolConfig& config, std::uint64_t cache_rows) {
  const std::uint64_t prompt = request.prompt.size();
  const std::uint64_t context_left = config.max_model_len - std::min<std::uint64_t>(config.max_model_len, prompt);
  if (const std::uint32_t asked = request.max_tokens.value_or(config.default_max_tokens); shifts(request, config) && asked > 0)
    return std::min(asked, kMostShiftedAnswer);
  std::uint64_t limit = context_left;
  if (request.max_tokens) {
    limit = std::min<std::uint64_t>(limit, *request.max_tokens);
  } else if (config.default_max_tokens > 0) {
    limit = std::min<std::uint64_t>(limit, config.default_max_tokens);
  } else {
    limit = std::min(limit, cache_rows > prompt ? cache_rows - prompt + 1 : 1);   // the last token needs no row
  }
  return static_cast<std::uint32_t>(limit);
}

// Most rows that it may store at one time.
std::uint64_t rows_of(const GenerateRequest& request, const PoolConfig& config, std::uint32_t limit) {
  const std::uint64_t rows = cache::rows_bound(request.prompt.size(), limit);
  return shifts(request, config) ? std::min<std::uint64_t>(rows, config.max_model_len) : rows;
}

// The longest prompt that the context takes: with output, one place is for that.
std::uint32_t longest_prompt(const GenerateRequest& request, const PoolConfig& config) {
  return request.max_tokens == 0u ? config.max_model_len : config.max_model_len - 1;
}

Status check_against(const GenerateRequest& request, const PoolConfig& config, std::uint32_t vocabulary,
                     bool has_tokenizer) {
  KV_TRY(validate(request));
  const std::size_t prompt = request.prompt.size();
  const std::uint32_t most = longest_prompt(request, config);
  if (prompt > most) {
    return Error{ErrorCode::bad_input, fmt::format("the prompt has {} tokens and the context (max-model-len) {}; valid: "
                                                   "a prompt of at most {} tokens",
                                                   prompt, config.max_model_len, most)};
  }
  for (std::size_t i = 0; i < prompt; ++i) {
    if (request.prompt[i] < 0 || static_cast<std::uint32_t>(request.prompt[i]) >= vocabulary) {
      return Error{ErrorCode::bad_input, fmt::format("token {} of the prompt is {}, valid: 0 to {} (the vocabulary)", i,
                                                     request.prompt[i], vocabulary - 1)};
    }
  }
  if (request.beam.width > config.max_sequences) {
    return Error{ErrorCode::bad_input, fmt::format("beam width is {}, valid: up to max-num-seqs = {}", request.beam.width,
                                                   config.max_sequences)};
  }
  if (!request.stop.empty() && !has_tokenizer) {
    return Error{ErrorCode::bad_input, "stop strings need a tokenizer, and this engine works on token ids alone"};
  }
  return validate_tokens(request.sampling, vocabulary);
}

QueueReason queue_reason(sched::WaitReason reason) {
  switch (reason) {
    case sched::WaitReason::none: return QueueReason::none;
    case sched::WaitReason::sequence_limit: return QueueReason::sequence_limit;
    case sched::WaitReason::token_budget: return QueueReason::token_budget;
    case sched::WaitReason::step_time: return QueueReason::step_time;
    case sched::WaitReason::blocks:
    case sched::WaitReason::never_fits: return QueueReason::blocks;
  }
  return QueueReason::none;
}

std::string dtype_name(format::KvFormat format) {
  if (format.k == format.v) return std::string(format::to_string(format.k));
  return fmt::format("{}/{}", format::to_string(format.k), format::to_string(format.v));
}

}  // namespace

Status Engine::check(const GenerateRequest& request) const {
  const State& s = *state_;
  KV_TRY(check_against(request, s.config, s.model->geometry().vocabulary, s.tokenizer != nullptr));
  const std::uint32_t limit = output_limit(request, s.config, s.max_rows());
  const cache::FitVerdict fit = s.whole.check({.rows = rows_of(request, s.config, limit),
                                              .prompt_tokens = request.prompt.size(),
                                              .sequences = std::max(request.beam.width, 1u)});
  return fit.ok() ? ok_status() : Status(cache::to_error(fit));
}

Result<RequestId> Engine::submit(GenerateRequest request, core::SubmitVerdict* why) {
  State& s = *state_;
  KV_CHECK(!s.in_step, "calls into an engine do not nest");
  core::SubmitVerdict verdict;
  const auto refuse = [&](Error error) {
    ++s.totals.refused;
    s.totals.refusals.add(verdict.reason);
    if (why != nullptr) *why = verdict;
    return error;
  };
  if (why != nullptr) *why = {};
  const Status valid = check_against(request, s.config, s.model->geometry().vocabulary, s.tokenizer != nullptr);
  if (!valid.ok()) {
    const std::uint32_t longest = longest_prompt(request, s.config);
    verdict.reason = core::RefusalReason::bad_request;
    if (request.prompt.size() > longest) {
      verdict = {core::RefusalReason::context_length, request.prompt.size(), longest, {}};
    }
    return refuse(valid.error());
  }

  const std::uint32_t limit = output_limit(request, s.config, s.max_rows());
  const bool scored = request.prompt_logits || request.prompt_logprobs >= 0;   // it wants every row of its prompt computed
  const core::RequestSpec spec{.prompt = request.prompt,
                               .max_new_tokens = limit,
                               .priority = request.priority,
                               .arrived_us = platform::monotonic_ns() / 1000,
                               .family = scored || request.beam.width > 1 ? 0 : request.family,
                               .beams = std::max(request.beam.width, 1u)};
  verdict = s.core.can_submit(spec);
  Result<RequestId> id = s.core.submit(spec);
  if (!id.ok()) return refuse(id.error());
  auto live = std::make_unique<Live>(*id, request, rows_of(request, s.config, limit), limit, s.tokenizer.get());
  s.begin_beams(*live, request, limit);
  const Status backed = s.populate_for(*live);
  if (!backed.ok()) {
    s.core.cancel(*id);
    s.core.forget(*id);
    verdict.reason = core::RefusalReason::memory;
    return refuse(backed.error());
  }
  for (std::uint32_t group = 0; group < s.groups(); ++group) s.live_blocks[group] += s.bound_blocks(*live, group);
  s.live.emplace(*id, std::move(live));
  return *id;
}

bool Engine::cancel(RequestId id) {
  State& s = *state_;
  KV_CHECK(!s.in_step, "calls into an engine do not nest");
  s.remember_active();
  const bool cancelled = s.core.cancel(id);
  s.poison_freed();
  if (!cancelled) return false;
  s.forget(id);
  ++s.totals.cancelled;
  return true;
}

StepReport Engine::step(std::vector<TokenOutput>& out) {
  State& s = *state_;
  KV_CHECK(!s.in_step, "calls into an engine do not nest");
  s.in_step = true;
  out.clear();
  s.ended.clear();
  StepReport report;
  const std::uint64_t start = platform::monotonic_ns();
  const sched::StepPlan& plan = s.core.plan(start / 1000);
  report.waiting = queue_reason(plan.waiting);
  // The plan looks no further down the queue than sequences could run at once.
  const core::CoreStats life = s.core.stats();
  if (report.waiting == QueueReason::none && life.queued > life.awaiting_prompt) report.waiting = QueueReason::sequence_limit;
  if (plan.empty()) {
    s.emit_ended(out);
    s.in_step = false;
    return report;
  }
  s.batch.build(s.core, [&s](RequestId id) { return s.live_of(id).prompt_logits_from; });
  for (const cache::CopyBlock& copy : s.core.copies()) s.store.copy_block(copy.group, copy.from, copy.to);
  const std::uint64_t planned = platform::monotonic_ns();
  s.forward.run(s.batch.input());
  const std::uint64_t computed = platform::monotonic_ns();
  s.sample();
  const std::uint64_t sampled = platform::monotonic_ns();
  s.emit(out);
  s.remember_active();
  s.core.apply(s.results, platform::seconds_between(start, platform::monotonic_ns()));
  s.emit_ended(out);
  s.poison_freed();
  const std::uint64_t end = platform::monotonic_ns();

  report.ran = true;
  report.sequences = static_cast<std::uint32_t>(plan.chunks.size());
  report.prefill_tokens = plan.work.prefill_rows;
  report.decode_tokens = plan.work.decode_rows;
  report.plan_s = platform::seconds_between(start, planned);
  report.forward_s = platform::seconds_between(planned, computed);
  report.sample_s = platform::seconds_between(computed, sampled);
  report.apply_s = platform::seconds_between(sampled, end);
  report.total_s = platform::seconds_between(start, end);
  report.predicted_s = plan.predicted_s;
  report.queued = static_cast<std::uint32_t>(s.core.queued().size());
  report.running = static_cast<std::uint32_t>(s.core.running().size());
  EngineStats& t = s.totals;
  ++t.steps;
  t.prefill_tokens += report.prefill_tokens;
  t.decode_tokens += report.decode_tokens;
  t.forward_s += report.forward_s;
  t.sample_s += report.sample_s;
  t.total_s += report.total_s;
  t.predicted_s += report.predicted_s;
  s.in_step = false;
  return report;
}

std::span<const RequestId> Engine::admitted() const { return state_->core.current_plan().admitted; }

bool Engine::has_work() const { return !state_->core.idle() || !state_->core.finished().empty(); }

CacheAccounting Engine::accounting() const {
  const State& s = *state_;
  const cache::KvCache& cache = s.core.cache();
  const store::StorePlan& plan = s.store.plan();
  CacheAccounting a;
  for (std::uint32_t group = 0; group < s.groups(); ++group) {
    const cache::GroupStats stats = cache.stats(group);
    const std::uint64_t bytes = plan.groups[group].layout.block_bytes();
    a.active_bytes += stats.pool.active * bytes;
    a.cached_bytes += stats.pool.cached * bytes;
    a.free_bytes += stats.pool.free * bytes;
    a.quarantined_bytes += stats.pool.quarantined * bytes;
    a.claimed_bytes += stats.claimed * bytes;
    a.slack_bytes += stats.superpages * plan.tail_bytes(group);
    a.active_blocks += stats.pool.active;
    a.cached_blocks += stats.pool.cached;
    a.free_blocks += stats.pool.free;
    a.quarantined_blocks += stats.pool.quarantined;
    a.total_blocks += stats.pool.total;
    a.allocated_rows = std::max(a.allocated_rows, (std::uint64_t{stats.pool.active} + stats.pool.cached) * stats.block_tokens);
    a.claimed_rows = std::max(a.claimed_rows, stats.claimed * stats.block_tokens);
  }
  const std::uint64_t free_blocks = std::uint64_t{cache.free_superpages()} * plan.groups[0].blocks_per_superpage;
  a.free_blocks += free_blocks;
  a.total_blocks += free_blocks;
  a.free_bytes += cache.free_superpages() * plan.superpage_bytes;
  a.live_rows = cache.live_rows();
  a.slack_bytes += plan.slack_bytes;
  a.total_bytes = plan.capacity_bytes;
  a.superpage_bytes = plan.superpage_bytes;
  a.superpages = plan.superpages;
  a.free_superpages = cache.free_superpages();
  return a;
}

std::vector<GroupAccounting> Engine::cache_groups() const {
  static_assert(kMaxCacheGroups == cache::kMaxGroups);
  const State& s = *state_;
  std::vector<GroupAccounting> groups(s.groups());
  for (std::uint32_t group = 0; group < s.groups(); ++group) {
    const cache::GroupStats stats = s.core.cache().stats(group);
    const store::GroupPlan& plan = s.store.plan().groups[group];
    groups[group] = {.window = plan.reach.window,
                     .chunked = plan.reach.chunked,
                     .layers = plan.layout.layers(),
                     .kv_heads = plan.layout.kv_heads(),
                     .head_dim = plan.layout.head_dim(),
                     .block_tokens = plan.layout.block_tokens(),
                     .block_bytes = plan.layout.block_bytes(),
                     .blocks_per_superpage = plan.blocks_per_superpage,
                     .superpages = stats.superpages,
                     .active = stats.pool.active,
                     .cached = stats.pool.cached,
                     .free = stats.pool.free,
                     .quarantined = stats.pool.quarantined,
                     .claimed = stats.claimed,
                     .tail_bytes = stats.superpages * s.store.plan().tail_bytes(group),
                     .left_behind = stats.left_behind,
                     .moved = stats.moved};
  }
  return groups;
}

EngineStats Engine::stats() const {
  EngineStats stats = state_->totals;
  stats.cache = accounting();
  const core::CoreStats core = state_->core.stats();
  stats.waiting = core.queued;
  stats.running = core.running;
  stats.queued_prompt_tokens = core.queued_tokens;
  stats.shared_prompt_tokens = core.shared_rows;
  stats.context_shifts = core.context_shifts;
  stats.shifted_tokens = core.shifted_rows;
  stats.step_cost = state_->core.step_cost().coefficients();
  return stats;
}

std::vector<MemoryLine> Engine::memory() const { return state_->memory; }

EffectiveSettings Engine::effective() const {
  const State& s = *state_;
  EffectiveSettings e;
  e.isa = s.model->options().isa;
  e.compute = s.model->options().compute;
  e.threads = s.config.threads;
  e.block_tokens = s.config.block_tokens;
  e.max_num_batched_tokens = s.config.max_batched_tokens;
  e.max_num_seqs = s.config.max_sequences;
  e.max_model_len = s.config.max_model_len;
  e.max_queued = s.config.max_queued;
  e.max_rows = s.max_rows();
  e.kv_cache_bytes = s.store.plan().capacity_bytes - s.store.plan().slack_bytes;
  e.kv_format = s.config.kv_format;
  e.kv_cache_dtype = dtype_name(s.config.kv_format);
  e.steps = s.totals.steps;
  return e;
}

const model::Model& Engine::model() const { return *state_->model; }

void Engine::set_logits_observer(LogitsObserver observer) { state_->observer = std::move(observer); }

void Engine::check_invariants() const {
  const State& s = *state_;
  s.core.check_invariants();
  const CacheAccounting a = accounting();
  KV_CHECK(a.active_bytes + a.cached_bytes + a.free_bytes + a.quarantined_bytes + a.slack_bytes == a.total_bytes,
           "active + cached + free + quarantined + slack = total");
  std::uint64_t superpages = a.free_superpages;
  for (const GroupAccounting& g : cache_groups()) {
    const std::uint64_t blocks = g.active + g.cached + g.free + g.quarantined, sliced = g.superpages;
    KV_CHECK(blocks == sliced * g.blocks_per_superpage, "a group's blocks are those of its superpages");
    KV_CHECK(blocks * g.block_bytes + g.tail_bytes == sliced * a.superpage_bytes, "blocks and tails fill superpages");
    superpages += sliced;
  }
  KV_CHECK(superpages == a.superpages, "a superpage is free or one group's");
  const core::CoreStats stats = s.core.stats();
  std::size_t led = 0;   // beams are one request
  for (const RequestId id : s.core.running()) led += s.core.find(id)->leader == id ? 1 : 0;
  KV_CHECK(s.live.size() == stats.queued + led, "one record a request that goes on");
  for (std::uint32_t group = 0; group < s.groups(); ++group) {
    std::uint64_t bounds = 0;
    for (const auto& [id, live] : s.live) bounds += s.bound_blocks(*live, group);
    KV_CHECK(bounds == s.live_blocks[group], "live_blocks adds up the bounds of live requests");
    KV_CHECK(s.store.populated_blocks(group) >= std::min<std::uint64_t>(bounds, s.store.blocks(group)),
             "the memory behind claims is populated");
  }
}

}  // namespace kvasir::engine
