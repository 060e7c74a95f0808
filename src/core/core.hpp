// The life of all requests: the one owner of cache metadata, driving cache and sched. Knows ids, tokens and counts; no
// bytes, no clock, no sampling. Measured step times come as arguments and feed the cost model.
// Thread rule: one owner (the step loop). plan(), apply() and cancel() allocate nothing; submit() allocates the
// request's token history.
//
//   submit -> plan -> [the caller does copies(), computes the step, samples] -> apply -> plan -> ...
//
// One step is in flight at a time, from a plan() that is not empty to its apply() or abandon(). A request cancelled
// meanwhile keeps its blocks until then, because the step may still write them; nobody else can be given them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cache/kv_cache.hpp"
#include "core/refusal.hpp"
#include "core/request.hpp"
#include "sched/queue_policy.hpp"
#include "sched/scheduler.hpp"
#include "sched/step_cost.hpp"

namespace kvasir::core {

// What may wait for admission. A place is taken by submit() and given back when the request is admitted or ends.
struct QueueLimits {
  std::uint32_t max_queued_requests = 0;  // 0: no limit
  // Prompt tokens that wait; 0: no limit. A longer prompt than this is taken where no other waits: the limit is on what
  // a request has before it, not on its own length.
  std::uint64_t max_queued_tokens = 0;
};

struct CoreConfig {
  cache::KvCacheConfig cache;  // max_sequences and max_step_rows are set from limits
  sched::Limits limits;
  std::uint32_t max_requests = 4096;  // known at one time: queued, running, and finished but not forgotten
  sched::QueuePolicy policy;
  QueueLimits queue;
  // Set: a request whose context is full keeps its first so many tokens and the later half of the others, and goes on.
  std::optional<std::uint32_t> context_keep;
  sched::CostCoefficients assumed_cost = sched::kCautiousCost;  // until steps have been measured
};

// What was sampled after a chunk that wants logits.
struct TokenResult {
  RequestId request;
  TokenId token = 0;
  bool stop = false;  // end of text or a stop string: the caller decides
};

// How a beam goes on: from where beam `from` of the same request stood (0 .. beams - 1), with this token.
struct BeamStep {
  std::uint32_t from = 0;
  TokenId token = 0;
};

struct CoreStats {
  std::uint32_t queued = 0, running = 0, finished = 0;
  std::uint32_t awaiting_prompt = 0;  // of those queued, seen by the last plan(): one of their family computes it
  std::uint32_t in_flight_chunks = 0;
  std::uint64_t queued_tokens = 0;  // prompt tokens of those queued
  std::uint64_t submitted = 0;      // since creation
  std::uint64_t shared_rows = 0;    // of prompts, that another of the family had computed; since creation
  std::uint64_t context_shifts = 0, shifted_rows = 0;  // since creation: how often, and rows to be computed again
  RefusalCounts refused;            // by submit, since creation
  std::uint64_t steps = 0;          // applied
};

class Core {
 public:
  // Errors: bad_input from the limits, the policy or the cache configuration.
  static Result<Core> create(const CoreConfig& config);
  // Heap bytes of a core of this configuration, cache metadata included; each request's tokens come on top (4 B each,
  // of its bound). REQUIRES: create() would accept it.
  static std::uint64_t metadata_bytes(const CoreConfig& config);

  // Would submit() take it? What can never be taken is told before what waiting would cure.
  SubmitVerdict can_submit(const RequestSpec& spec) const;
  // Queues a request, at its place in the order. Errors, with both numbers: bad_input (empty prompt, priority out of
  // range), does_not_fit (more rows than the context or the pool can ever hold), exhausted (a limit of the queue, or
  // max_requests are known). can_submit() tells these apart; nothing has changed then but the counter of the reason.
  Result<RequestId> submit(const RequestSpec& spec);

  // Plans the next step: admits, reserves its rows in the cache. Empty if there is nothing to compute.
  // The reference is valid until the next plan(). REQUIRES: no step in flight.
  const sched::StepPlan& plan(std::uint64_t now_us);

  // What the step in flight brought beams, in the place of results: how each goes on, or that they end. Before apply(), once,
  // when the prompt is computed and in each step after. REQUIRES: the first of them is in the plan with wants_logits; next: one
  // a beam, until the first call all from 0; max_new_tokens is not reached.
  void continue_beams(RequestId leader, std::span<const BeamStep> next);
  void end_beams(RequestId leader, FinishReason reason);
  // The beams of a request, in order: those that branched; itself first.
  std::span<const RequestId> beams(RequestId leader) const;

  // The step in flight has been computed: one mutating pass. results: one for each chunk with wants_logits, in plan
  // order (those of cancelled requests too; they are dropped); none for beams. step_s: how long it took, from plan() to here; 0 if it
  // was not measured. REQUIRES: a step in flight.
  void apply(std::span<const TokenResult> results, double step_s = 0);
  // The step in flight was not computed: its rows are given back, requests stay where they were.
  void abandon();

  // Ends a request: at once, or when the step in flight that holds it ends. False if it is finished or unknown already
  // (a client may hang up at any moment; that is no error).
  bool cancel(RequestId id);

  // Requests that ended and are not forgotten yet, in the order in which they ended. Valid until the next call.
  std::span<const RequestId> finished() const { return finished_; }
  // Drops a finished request's record. REQUIRES: finished.
  void forget(RequestId id);

  // Null if unknown. Valid until forget().
  const Request* find(RequestId id) const;
  const sched::StepPlan& current_plan() const { return plan_; }
  bool step_in_flight() const { return in_flight_; }
  // Blocks to copy before the step in flight is computed.
  std::span<const cache::CopyBlock> copies() const { return cache_.copies(); }
  const cache::KvCache& cache() const { return cache_; }
  CoreStats stats() const;
  const sched::StepCost& step_cost() const { return cost_; }
  // Requests in their order: those waiting, those admitted. Valid until the next call.
  std::span<const RequestId> queued() const { return queued_; }
  std::span<const RequestId> running() const { return running_; }
  bool idle() const { return queued_.empty() && running_.empty(); }

  // Re-derives lists and counters; aborts on a difference. Allocates.
  void check_invariants() const;

 private:
  Core(const CoreConfig& config, cache::KvCache cache);
  static void erase_id(std::vector<RequestId>& list, RequestId id);
  Request& at(RequestId id);
  std::uint32_t slot_of(RequestId id) const { return static_cast<std::uint32_t>(id.value % requests_.size()); }
  // Requests that go on from each other.
  struct Beams {
    std::vector<RequestId> members;     // the leader first
    cache::ForkReserve reserve;         // while admitted
    std::vector<BeamStep> next;         // of the step in flight; empty: nothing said yet
    FinishReason end = FinishReason::none;
    bool branched = false;
  };
  Request& new_request(const RequestSpec& spec);
  std::size_t beams_index(RequestId leader) const;
  Beams& beams_of(RequestId leader) { return beams_[beams_index(leader)]; }
  void settle_beams();
  void branch(Beams& beams);
  void give_up_beams(RequestId leader);
  void drop(Request& request);
  void insert_in_order(std::vector<RequestId>& list, RequestId id);
  // What a queued request can begin with: rows of a running one; or it waits until there are.
  struct Sharing {
    SequenceId from = {};
    std::uint32_t rows = 0;
    bool waits = false;
  };
  Sharing sharing_of(const Request& request) const;
  void view_queue();
  void drop_unservable_heads();
  void start_step();
  void finish(Request& request, FinishReason reason);
  void leave(Request& request);
  std::uint64_t bound_rows(std::uint64_t prompt, std::uint64_t max_new, std::uint64_t dropped, std::uint32_t beams) const;
  std::uint64_t bound_rows(const Request& request) const;
  std::uint64_t answer_bound(const Request& request) const;
  cache::Demand demand_of(const Request& request) const;
  void shift_context(Request& request);
  void apply_chunk(Request& request, const sched::Chunk& chunk, const TokenResult* result);

  cache::KvCache cache_;
  sched::Limits limits_;
  sched::QueuePolicy policy_;
  QueueLimits queue_limits_;
  std::optional<std::uint32_t> context_keep_;
  std::vector<Request> requests_;  // slots; an id's slot is id mod size, and ids rise with arrival
  std::vector<std::uint32_t> free_slots_;
  std::vector<RequestId> queued_, running_, finished_;  // by place, by place, in order of ending
  std::vector<sched::RunningRequest> running_views_;    // scratch for plan()
  std::vector<sched::QueuedRequest> queued_views_;
  std::uint32_t awaiting_prompt_ = 0;
  std::vector<Beams> beams_;
  sched::StepPlan plan_;
  bool in_flight_ = false;
  sched::StepCost cost_;
  std::uint64_t queued_tokens_ = 0;
  std::uint64_t serial_ = 0, steps_ = 0, shared_rows_ = 0, context_shifts_ = 0, shifted_rows_ = 0;
  RefusalCounts refused_;
};

}  // namespace kvasir::core
