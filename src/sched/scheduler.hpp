// What the next step computes: a pure function of the requests' state, the cache's budget and the time.
// Thread rule: pure; any thread. Allocates nothing while the plan's capacity suffices.
//
// First come, first served:
//   1. every decoding request gets its row (the limits make room for all of them);
//   2. what is left of the token budget goes to prompts under way, in arrival order;
//   3. then queued requests are admitted in arrival order, each only if its whole claim fits. The head of the queue
//      blocks those behind it: nothing overtakes, so nothing starves.
// Results do not depend on any of these choices (the continuation promise); only latency does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cache/claims.hpp"

namespace kvasir::sched {

struct Limits {
  std::uint32_t max_num_seqs = 256;             // admitted requests at one time
  std::uint32_t max_num_batched_tokens = 2048;  // token rows of a step; at least max_num_seqs
  std::uint32_t chunk_alignment = 1;            // an unfinished chunk ends at a multiple of this position if it can
};

// Errors: bad_input naming the key, its value and what would be valid.
Status validate(const Limits& limits);

// An admitted request: rows [computed, known) are still to be computed.
struct RunningRequest {
  RequestId id;
  std::uint32_t computed = 0;  // rows in the cache
  std::uint32_t known = 0;     // tokens known: the prompt and what was sampled; > computed
  bool decoding = false;       // the prompt is computed
  bool wants_logits = true;    // a token is to be sampled after row known - 1
};

struct QueuedRequest {
  RequestId id;
  std::uint64_t bound_rows = 0;     // cache::rows_bound of prompt and output limit
  std::uint32_t prompt_tokens = 0;  // > 0
  bool wants_logits = true;
};

struct SchedulerState {
  std::span<const RunningRequest> running;  // in arrival order
  std::span<const QueuedRequest> queued;    // in arrival order; the first max_num_seqs are enough
  cache::AdmissionBudget budget;
  Limits limits;
};

// Consecutive token rows of one request in one step.
struct Chunk {
  RequestId request;
  std::uint32_t first_position = 0;
  std::uint32_t token_count = 0;
  bool wants_logits = false;  // of the last row
  bool operator==(const Chunk&) const = default;
};

// Why the head of the queue was not admitted.
enum class WaitReason : std::uint8_t { none, sequence_limit, token_budget, blocks, never_fits };

struct StepPlan {
  std::uint64_t now_us = 0;
  std::vector<Chunk> chunks;        // decode rows first, then prefill chunks
  std::vector<RequestId> admitted;  // to be admitted before the step; each also has a chunk
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;
  WaitReason waiting = WaitReason::none;
  cache::FitVerdict head;  // for `blocks` and `never_fits`: both numbers

  bool empty() const { return chunks.empty(); }
  void clear();
  // Room for any plan under these limits.
  void reserve(const Limits& limits);
};

// Fills `out` (cleared first). REQUIRES: validate(limits).ok(), running.size() <= max_num_seqs.
void plan(const SchedulerState& state, std::uint64_t now_us, StepPlan& out);

}  // namespace kvasir::sched
