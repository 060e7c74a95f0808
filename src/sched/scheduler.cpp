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
      : state_(state), out_(out), left_(state.limits.max_num_batched_tokens) {}

  void decode() {
    for (const RunningRequest& r : state_.running) {
      if (!r.decoding) continue;
      const std::uint32_t rows = r.known - r.computed;
      KV_CHECK(rows >= 1 && rows <= left_, "the token budget covers every decoding request");
      add(r.id, r.computed, rows, r.known, r.wants_logits);
      out_.decode_rows += rows;
    }
  }

  void continue_prompts() {
    for (const RunningRequest& r : state_.running)
      if (!r.decoding && left_ > 0) add_prefill(r.id, r.computed, r.known, r.wants_logits);
  }

  void admit() {
    cache::AdmissionBudget budget = state_.budget;
    std::size_t running = state_.running.size();
    for (const QueuedRequest& q : state_.queued) {
      out_.head = budget.check(q.bound_rows);
      out_.waiting = running >= state_.limits.max_num_seqs ? WaitReason::sequence_limit
                     : !out_.head.ok()                     ? reason_of(out_.head)
                     : left_ == 0                          ? WaitReason::token_budget
                                                           : WaitReason::none;
      if (out_.waiting != WaitReason::none) return;
      budget.take(q.bound_rows);
      ++running;
      out_.admitted.push_back(q.id);
      add_prefill(q.id, 0, q.prompt_tokens, q.wants_logits);
    }
  }

 private:
  void add_prefill(RequestId id, std::uint32_t computed, std::uint32_t known, bool wants_logits) {
    KV_CHECK(known > computed, "a request in prefill has tokens left to compute");
    const std::uint32_t rows = chunk_tokens(computed, known, left_, state_.limits.chunk_alignment);
    add(id, computed, rows, known, wants_logits);
    out_.prefill_tokens += rows;
  }

  void add(RequestId id, std::uint32_t computed, std::uint32_t rows, std::uint32_t known, bool wants_logits) {
    out_.chunks.push_back({id, computed, rows, wants_logits && computed + rows == known});
    left_ -= rows;
  }

  const SchedulerState& state_;
  StepPlan& out_;
  std::uint32_t left_;
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
  return ok_status();
}

void StepPlan::clear() {
  chunks.clear();
  admitted.clear();
  now_us = 0;
  decode_rows = prefill_tokens = 0;
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
}

}  // namespace kvasir::sched
