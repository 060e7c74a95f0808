// What the next step computes: a pure function of the requests' state, the cache's budget, the cost model and the time.
// Thread rule: pure; any thread. Allocates nothing while the plan's capacity suffices.
//
//   1. Every decoding request gets its row (the limits make room for all of them).
//   2. What is left of the step goes to prompts under way, in their order (queue_policy.hpp).
//   3. Then queued requests are admitted in their order, each only if its whole claim fits. The head of the queue
//      blocks those behind it in that order: nothing overtakes, so nothing starves. (Who waits for a prompt that a running
//      request computes for both is not in the state yet; it comes at its place when that is done.)
// What is left of the step: of its token budget; and beside decode rows, of the ITL target, as the cost model predicts
// it. So a long prompt slows running streams to the target and no further. Three exceptions, of which the last two keep a
// prompt from waiting for ever where the streams alone fill the target:
//   - With no stream to slow the target does not bind.
//   - Prompts get kPromptShare of a step's time, as long as that takes no more than kMostStretch targets.
//   - Where that leaves less than min_chunk rows, the first prompt in order gets that many all the same, within kMostStretch
//     times the target (or the time of the streams alone, if that is longer), and one row at least.
// With 1 and 3, everything admitted advances.
// Results do not depend on any of these choices (the continuation promise); only latency does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cache/claims.hpp"
#include "sched/step_cost.hpp"

namespace kvasir::sched {

inline constexpr double kMostItlTargetS = 60;  // beyond it nobody would call it a stream
inline constexpr double kMostStretch = 1.7;    // of a step beyond the target, by prompts: gaps stay under twice the target
inline constexpr double kPromptShare = 0.55;   // of a step: a prompt takes under twice the time it takes alone

struct Limits {
  std::uint32_t max_num_seqs = 256;             // admitted requests at one time
  std::uint32_t max_num_batched_tokens = 2048;  // token rows of a step; at least max_num_seqs
  std::uint32_t chunk_alignment = 1;            // an unfinished chunk ends at a multiple of this position if it can
  double itl_target_s = 0;                      // predicted time of a step with decode rows; 0: the token budget alone
  std::uint32_t min_chunk = 16;                 // rows of a prompt worth a place in such a step
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
  std::uint32_t sequences = 1;      // beams
  cache::SharedRows shared = {};    // of the prompt, in the cache already: a running request has the same; fewer than all
};

struct SchedulerState {
  std::span<const RunningRequest> running;  // in their order
  std::span<const QueuedRequest> queued;    // in their order; the first max_num_seqs + 1 are enough
  cache::AdmissionBudget budget;
  Limits limits;
  CostCoefficients cost = kCautiousCost;
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
enum class WaitReason : std::uint8_t {
  none,
  sequence_limit,
  token_budget,
  step_time,  // more rows would exceed the ITL target
  blocks,
  never_fits
};
std::string_view to_string(WaitReason reason);

struct StepPlan {
  std::uint64_t now_us = 0;
  std::vector<Chunk> chunks;        // decode rows first, then prefill chunks
  std::vector<RequestId> admitted;  // to be admitted before the step; each also has a chunk
  StepWork work;
  double predicted_s = 0;
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
