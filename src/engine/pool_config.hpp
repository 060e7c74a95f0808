// How large one engine is: memory, batch and threads. Several pools can stand over one copy of the weights.
// Thread rule: a value; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "format/kv_format.hpp"
#include "sched/queue_policy.hpp"

namespace kvasir::engine {

inline constexpr std::uint32_t kDefaultMaxSequences = 32;
inline constexpr std::uint32_t kDefaultMaxWaiting = 1024;   // requests beside those that run

struct PoolConfig {
  // --kv-cache-memory, bytes; rounded down to whole blocks (the rest is shown as slack). 0 = as much as one sequence of
  // max_model_len tokens takes, which memory() reports like a given size.
  std::uint64_t kv_cache_bytes = 0;
  std::uint32_t block_tokens = 32;          // --block-size: 16, 32, 64, 128 or 256
  format::KvFormat kv_format = {};             // --kv-cache-dtype
  std::uint32_t max_batched_tokens = 512;   // --max-num-batched-tokens: rows of one step
  // --max-num-seqs: sequences that run at once, at most max_batched_tokens, since each may need a row of every step.
  // 0 = kDefaultMaxSequences, or max_batched_tokens if that is less.
  std::uint32_t max_sequences = 0;
  // Set: an answer that fills the context goes on: its first so many tokens are kept and of the others the later half, and what
  // is kept is computed anew. 0 to max_model_len - 2. Not with beams.
  std::optional<std::uint32_t> context_keep = {};
  std::uint32_t max_model_len = 0;          // --max-model-len: prompt + output of one sequence; 0 = the model's context
  // Requests held in all, running ones included; more are refused (exhausted). 0 = max_sequences + kDefaultMaxWaiting.
  std::uint32_t max_queued = 0;
  // What may wait for admission; more is refused (exhausted). 0 = no limit but max_queued.
  std::uint32_t max_queued_requests = 0;    // --max-num-queued-reqs
  std::uint64_t max_queued_tokens = 0;      // --max-num-queued-tokens: of their prompts
  sched::Policy policy = sched::Policy::fcfs;   // --scheduling-policy
  // --itl-target, seconds: prompts are cut so that a step beside running answers is predicted to take no longer (see
  // sched/scheduler.hpp for when it is stretched). 0 = no target: every step is as full as max_batched_tokens allows.
  double itl_target_s = 0;
  std::uint32_t threads = 2;                // --threads, the caller's included
  std::uint32_t default_max_tokens = 0;     // of a request without max_tokens; 0 = up to max_model_len

  // Rows of one step whose logits are held at a time; 0 = max_sequences. Prompts scored at every position want more rows
  // than that: the head then runs in parts.
  std::uint32_t logits_rows = 0;

  // For tests. Order in which physical blocks are first handed out: 0 = natural, else shuffled by this seed.
  std::uint64_t block_order_seed = 0;
  // For tests and debugging: free blocks are filled with NaN, so that a row read before it is written shows.
  bool poison_free = false;
};

// Errors: bad_input naming key, value and range.
Status validate(const PoolConfig& config);

}  // namespace kvasir::engine
