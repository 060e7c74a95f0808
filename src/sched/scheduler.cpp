#include "sched/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace kvasir::sched {
namespace {

// Rows of the next chunk of a prompt: as many as the budget allows; one that does not finish the prompt ends at a
// multiple of the alignment, unless that would leave nothing (then progress matters more).
std::uint32_t chunk_tokens(std::uint32_t computed, std::uint32_t known, std::uint32_t left, std::uint32_t alignment) {
  const std::uint32_t wanted = known - computed;
  if (wanted <= left) return wanted;
  const std::uint32_t end = computed + left;
  const std::uint32_t aligned_end = end - end % alignment;
  return aligned_end > computed ? aligned_end - computed : left;
}

WaitReason reason_of(const cache::FitVerdict& verdict) {
  if (cache::never_fits(verdict.fit)) return WaitReason::never_fits;
  return verdict.fit == cache::Fit::no_sequence_slot ? WaitReason::sequence_limit : WaitReason::blocks;
}

// Builds one plan; holds what is left of the step's token budget.
class Planner {
 public:
  Planner(const SchedulerState& state, StepPlan& out)
      : state_(state), limits_(state.limits), out_(out), left_(limits_.max_num_batched_tokens) {}

  void decode() {
    for (const RunningRequest& r : state_.running) {
      if (!r.decoding) continue;
      const std::uint32_t rows = r.known - r.computed;
      KV_CHECK(rows >= 1 && rows <= left_, "the token budget covers every decoding request");
      out_.work.add_decode(r.computed, rows);
      add(r.id, r.computed, rows, r.known, r.wants_logits);
    }
    if (limits_.itl_target_s == 0 || out_.work.decode_rows == 0) return;
    target_binds_ = true;
    const double target = limits_.itl_target_s, streams = state_.cost.predict(out_.work);
    step_limit_s_ = std::clamp(streams / (1 - kPromptShare), target, kMostStretch * target);
    first_chunk_limit_s_ = kMostStretch * std::max(target, streams);
  }

  void continue_prompts() {
    for (const RunningRequest& r : state_.running) {
      if (r.decoding) continue;
      KV_CHECK(r.known > r.computed, "a request in prefill has tokens left to compute");
      const std::uint32_t room = prefill_room(r.computed, r.known);
      if (room > 0) add_prefill(r.id, r.computed, r.known, r.wants_logits, room);
    }
  }

  void admit() {
    cache::AdmissionBudget budget = state_.budget;
    std::size_t running = state_.running.size();
    for (const QueuedRequest& q : state_.queued) {
      KV_CHECK(q.prompt_tokens > q.shared.rows, "a queued request has tokens to compute");
      const std::uint32_t room = prefill_room(q.shared.rows, q.prompt_tokens);
      const cache::Demand demand{q.bound_rows, q.prompt_tokens, q.sequences, q.shared};
      out_.head = budget.check(demand);
      out_.waiting = running + q.sequences > limits_.max_num_seqs ? WaitReason::sequence_limit
                     : !out_.head.ok()               ? reason_of(out_.head)
                     : left_ == 0                    ? WaitReason::token_budget
                     : room == 0                     ? WaitReason::step_time
                                                     : WaitReason::none;
      if (out_.waiting != WaitReason::none) return;
      budget.take(demand);
      running += q.sequences;
      out_.admitted.push_back(q.id);
      add_prefill(q.id, q.shared.rows, q.prompt_tokens, q.wants_logits, room);
    }
  }

 private:
  // Most rows that the next chunk of a prompt may have in this step. A chunk that the limit would cut below min_chunk
  // is left out: it would cost more than it brings. The step's first chunk is never left out, but may be cut further.
  std::uint32_t prefill_room(std::uint32_t computed, std::uint32_t known) const {
    const std::uint32_t most = std::min(known - computed, left_);
    if (!target_binds_ || most == 0) return most;
    const std::uint32_t least = std::min(limits_.min_chunk, most);
    const std::uint32_t fitting = rows_within(step_limit_s_, computed, most);
    if (fitting >= least) return fitting;
    return out_.work.prefill_rows > 0 ? 0 : std::max(rows_within(first_chunk_limit_s_, computed, least), 1u);
  }

  // The cost never falls with more rows, so the largest number that keeps the time is found by halving.
  std::uint32_t rows_within(double seconds, std::uint32_t computed, std::uint32_t most) const {
    std::uint32_t fits = 0, beyond = most + 1;
    while (beyond - fits > 1) {
      const std::uint32_t rows = fits + (beyond - fits) / 2;
      StepWork work = out_.work;
      work.add_prefill(computed, rows);
      (state_.cost.predict(work) <= seconds ? fits : beyond) = rows;
    }
    return fits;
  }

  void add_prefill(RequestId id, std::uint32_t computed, std::uint32_t known, bool wants_logits, std::uint32_t room) {
    const std::uint32_t rows = chunk_tokens(computed, known, room, limits_.chunk_alignment);
    out_.work.add_prefill(computed, rows);
    add(id, computed, rows, known, wants_logits);
  }

  void add(RequestId id, std::uint32_t computed, std::uint32_t rows, std::uint32_t known, bool wants_logits) {
    out_.chunks.push_back({id, computed, rows, wants_logits && computed + rows == known});
    left_ -= rows;
  }

  const SchedulerState& state_;
  const Limits& limits_;
  StepPlan& out_;
  std::uint32_t left_;
  bool target_binds_ = false;
  double step_limit_s_ = 0, first_chunk_limit_s_ = 0;  // where it binds
};

}  // namespace

Status validate(const Limits& limits) {
  if (limits.max_num_seqs == 0) return Error{ErrorCode::bad_input, "max_num_seqs = 0; at least 1 is needed"};
  if (limits.max_num_batched_tokens < limits.max_num_seqs)
    return Error{ErrorCode::bad_input,
                 fmt::format("max_num_batched_tokens = {}; at least max_num_seqs = {} is needed, so that every running "
                             "request gets its row",
                             limits.max_num_batched_tokens, limits.max_num_seqs)};
  if (limits.chunk_alignment == 0 || limits.chunk_alignment > limits.max_num_batched_tokens)
    return Error{ErrorCode::bad_input, fmt::format("chunk_alignment = {}; valid are 1 to max_num_batched_tokens = {}",
                                                   limits.chunk_alignment, limits.max_num_batched_tokens)};
  if (!(limits.itl_target_s >= 0 && limits.itl_target_s <= kMostItlTargetS))
    return Error{ErrorCode::bad_input, fmt::format("itl_target_s = {}; valid are 0 (no target) to {} seconds",
                                                   limits.itl_target_s, kMostItlTargetS)};
  if (limits.min_chunk == 0) return Error{ErrorCode::bad_input, "min_chunk = 0; at least 1 is needed"};
  return ok_status();
}

std::string_view to_string(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "none";
    case WaitReason::sequence_limit:
      return "sequence_limit";
    case WaitReason::token_budget:
      return "token_budget";
    case WaitReason::step_time:
      return "step_time";
    case WaitReason::blocks:
      return "blocks";
    case WaitReason::never_fits:
      return "never_fits";
  }
  return "?";
}

void StepPlan::clear() {
  chunks.clear();
  admitted.clear();
  now_us = 0;
  work = {};
  predicted_s = 0;
  waiting = WaitReason::none;
  head = {};
}

void StepPlan::reserve(const Limits& limits) {
  chunks.reserve(limits.max_num_seqs);  // one chunk a request
  admitted.reserve(limits.max_num_seqs);
}

void plan(const SchedulerState& state, std::uint64_t now_us, StepPlan& out) {
  KV_CHECK(state.running.size() <= state.limits.max_num_seqs, "no more requests run than the limit allows");
  out.clear();
  out.now_us = now_us;
  Planner planner(state, out);
  planner.decode();
  planner.continue_prompts();
  planner.admit();
  if (!out.empty()) out.predicted_s = state.cost.predict(out.work);
}

}  // namespace kvasir::sched
