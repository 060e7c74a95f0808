// The one place that composes: requests in, mixed steps over the paged cache, sampled tokens and their text out.
//
//   step:  core plans -> page tables -> Forward::run -> sample -> text and stop strings -> core applies
//
// Thread rule: one thread at a time calls into an engine; its own thread pool is inside. Two engines over one Model are
// independent.
// Invariants: accounting() holds before and after every call (active + cached + free + quarantined + slack = total). A
// request that was admitted never fails for memory. After warm-up step() allocates nothing on the heap, provided `out`
// has room for max_sequences entries (max_batched_tokens with prompt_logprobs). A request's tokens depend on its prompt,
// its sampling parameters and the numeric id alone, not on what runs beside it.
// Errors: see each call. Nothing throws.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/refusal.hpp"
#include "engine/pool_config.hpp"
#include "engine/request.hpp"
#include "engine/sampling_params.hpp"
#include "format/kv_format.hpp"
#include "model/model.hpp"
#include "platform/isa.hpp"
#include "sched/step_cost.hpp"

namespace kvasir::text {
class Tokenizer;
}

namespace kvasir::engine {

// Why the request at the head of the queue did not join the last step; those behind it wait for the same.
enum class QueueReason : std::uint8_t {
  none,            // nothing waits
  sequence_limit,  // max_sequences run already
  token_budget,    // the step's rows were used up
  step_time,       // more rows would have made the step longer than the target
  blocks,          // its claim does not fit now
};

// What one step did. Times in seconds.
struct StepReport {
  bool ran = false;                  // false: nothing could run (no work)
  std::uint32_t sequences = 0;       // in the batch
  std::uint32_t prefill_tokens = 0;  // rows of prompts
  std::uint32_t decode_tokens = 0;   // rows of answers
  double plan_s = 0, forward_s = 0, sample_s = 0, apply_s = 0;
  double total_s = 0;
  QueueReason waiting = QueueReason::none;
  double predicted_s = 0;                          // what the cost model expected of total_s
  std::uint32_t queued = 0, running = 0;           // requests, when it had ended
};

// Bytes and blocks of the cache, all groups. active + cached + free + quarantined + slack = total.
struct CacheAccounting {
  std::uint64_t active_bytes = 0, cached_bytes = 0, free_bytes = 0, quarantined_bytes = 0, slack_bytes = 0;
  std::uint64_t total_bytes = 0;     // kv_cache_bytes as given or chosen
  std::uint64_t claimed_bytes = 0;   // what admitted requests may still take
  // Of all groups; superpages that no group has count as the first group's.
  std::uint64_t active_blocks = 0, cached_blocks = 0, free_blocks = 0, quarantined_blocks = 0, total_blocks = 0;
  std::uint64_t live_rows = 0;       // token rows of requests
  std::uint64_t allocated_rows = 0, claimed_rows = 0;   // that blocks held or claimed have room for, in the fullest group
  // Superpages that groups share, and those that none has. A group alone has the only one.
  std::uint64_t superpage_bytes = 0, superpages = 0, free_superpages = 0;
  bool operator==(const CacheAccounting&) const = default;
};

inline constexpr std::uint32_t kMaxCacheGroups = 8;   // that a model may have

// One cache group: the layers that keep the same span of history in rows of the same size. What it is, what it has now, and
// what it did since the start. active + cached + free + quarantined = superpages * blocks_per_superpage, and in bytes
// (active + cached + free + quarantined) * block_bytes + tail_bytes = superpages * the arena's superpage_bytes.
struct GroupAccounting {
  std::uint32_t window = 0;          // keys that a row reaches; 0: all of history
  bool chunked = false;              // the window is a chunk
  std::uint32_t layers = 0, kv_heads = 0, head_dim = 0, block_tokens = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t blocks_per_superpage = 0, superpages = 0;
  std::uint64_t active = 0, cached = 0, free = 0, quarantined = 0;   // blocks
  std::uint64_t claimed = 0;         // blocks that admitted requests may still take, free ones or of other superpages
  std::uint64_t tail_bytes = 0;      // what its slices leave of its superpages
  std::uint64_t left_behind = 0;     // blocks let go because a window had passed them
  std::uint64_t moved = 0;           // blocks moved to empty a superpage
  bool operator==(const GroupAccounting&) const = default;
};

struct EngineStats {
  CacheAccounting cache;
  std::uint32_t waiting = 0, running = 0;   // requests
  std::uint64_t steps = 0;
  std::uint64_t prefill_tokens = 0, decode_tokens = 0;   // rows computed since the start
  std::uint64_t shared_prompt_tokens = 0;   // rows of prompts that another request of the family had computed
  std::uint64_t context_shifts = 0, shifted_tokens = 0;   // since the start; tokens that were kept and computed again
  std::uint64_t finished = 0, cancelled = 0, refused = 0;   // requests since the start
  double forward_s = 0, sample_s = 0, total_s = 0;          // seconds since the start, all steps
  core::RefusalCounts refusals;              // `refused`, by reason
  std::uint64_t queued_prompt_tokens = 0;    // of those waiting
  double predicted_s = 0;                    // seconds that total_s was predicted to be
  sched::CostCoefficients step_cost;         // as fitted so far
  std::uint64_t peak_active_bytes = 0;      // most cache bytes that were active after any step
};

// One line of the start-up memory table. `computed` comes from the layer's footprint function, `real` from what was
// allocated; they agree within 2 % or one of them is a bug.
struct MemoryLine {
  std::string name;             // "weights", "cache", "workspace", "metadata", "slack"
  std::uint64_t computed = 0;   // bytes
  std::uint64_t real = 0;       // bytes
  std::string how;              // the sum in words: "512 blocks x 737,280 B"
};

// What the settings came to, for the output of commands.
struct EffectiveSettings {
  platform::Isa isa = platform::Isa::scalar;
  model::Compute compute = model::Compute::int8;
  std::uint32_t threads = 0;
  std::uint32_t block_tokens = 0;
  std::uint32_t max_num_batched_tokens = 0;
  std::uint32_t max_num_seqs = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t max_queued = 0;       // requests held in all, running ones included
  std::uint64_t max_rows = 0;         // token rows of the longest sequence that the cache can hold
  std::uint64_t kv_cache_bytes = 0;   // usable, whole blocks
  format::KvFormat kv_format;
  std::string kv_cache_dtype;         // "f16", or "f16/f32" where K and V differ
  std::uint64_t steps = 0;            // run so far
};

// Called within step(), on the thread that called it, for each row whose logits were computed: `position` is that of the
// token that was fed, so the logits are about position + 1. The span lives during the call.
using LogitsObserver = std::function<void(RequestId request, std::uint32_t position, std::span<const float> logits)>;

class Engine {
 public:
  // `tokenizer` may be null for use with token ids only: outputs then have no text, stop strings are refused and no
  // token ends an answer.
  // Errors: bad_input (config key, value, range); does_not_fit (kv_cache_bytes below one block of each group, with both
  // numbers; a max_model_len above the model's context); io (the system refused the memory).
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const model::Model> model,
                                                std::shared_ptr<const text::Tokenizer> tokenizer, const PoolConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether submit() would refuse the request for what it is: everything that needs no look at the queue or the memory in
  // use. Any thread, at any time, during a step too. Errors: submit()'s, but for `exhausted`.
  Status check(const GenerateRequest& request) const;

  // Queues a request. What can never run is refused here, not later.
  // Errors: bad_input (empty prompt, a token id outside the vocabulary, parameters out of range, more than the context:
  // prompt and context size); does_not_fit (prompt + output limit need more blocks than the cache has: both numbers);
  // exhausted (max_queued requests already, or max_queued_requests or max_queued_tokens wait).
  // why: receives the reason and both numbers; `none` if it was taken.
  Result<RequestId> submit(GenerateRequest request, core::SubmitVerdict* why = nullptr);

  // Ends a request at any moment between steps and frees all it held. It gets no further output. False if there is no
  // such request (finished already, or never known).
  bool cancel(RequestId id);

  // Runs one mixed step and replaces `out` by what it brought. With no work, `ran` is false.
  StepReport step(std::vector<TokenOutput>& out);

  // Requests that left the queue with the last step, in order. Until the next call that is not const.
  std::span<const RequestId> admitted() const;
  bool has_work() const;
  EngineStats stats() const;
  CacheAccounting accounting() const;
  std::vector<GroupAccounting> cache_groups() const;   // at most kMaxCacheGroups, as the model's geometry has them
  std::vector<MemoryLine> memory() const;
  EffectiveSettings effective() const;
  const model::Model& model() const;

  // Replaces the observer; an empty function removes it.
  void set_logits_observer(LogitsObserver observer);

  // Re-derives the counters of every structure below and compares. A broken invariant aborts with its name.
  void check_invariants() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::engine
