// The thread that owns one engine and steps it. Everybody else hands requests in and gets events through a sink.
//
//   reserve -> (render, tokenize) -> submit -> on_token ... on_token -> on_end
//                                       \___________ cancel, at any moment
//
// Thread rule: every member from any thread (start() and stop() from one of them, not from a sink). Sinks are called on
// the loop's own thread, between steps.
// Invariants: every accepted stream gets exactly one on_end(), whatever happens. A cancelled one ends within one step
// of the cancel and by then holds nothing. Statistics that belong to an event are published before the event is given
// out. With nothing to do the thread sleeps.
// Errors: a typed Refusal from reserve() and submit(); what happens later comes as EndReason::error.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <variant>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "server/engine_loop_mailbox.hpp"
#include "server/engine_loop_stats.hpp"
#include "server/published.hpp"
#include "server/token_sink.hpp"

namespace kvasir::server {

struct EngineLoopConfig {
  std::uint32_t max_queued_requests = 1024;  // --max-num-queued-reqs: not scheduled yet, reserved places included
  std::uint64_t max_queued_tokens = 0;       // --max-num-queued-tokens: of their prompts; 0 = no bound
  bool check_invariants = false;             // after every step: slow, for tests and soaks
  // A turn without work at least this often keeps the heartbeat fresh: often enough for a liveness probe, too rare to
  // cost anything.
  std::uint32_t idle_turn_ms = 200;
  // Called on the loop's thread after each step, before its events are given out. Must not block or throw.
  StepHook on_step = {};
  TellHook on_telling = {};  // also on the loop's thread; must not block or throw
};

// One answer wanted, or one beam search. n choices of a prompt are n submissions with request.sampling.choice 0 .. n-1,
// often to one sink.
struct Submission {
  engine::GenerateRequest request;
  std::shared_ptr<TokenSink> sink;
};

using Reserved = std::variant<Place, Refusal>;
using Submitted = std::variant<StreamId, Refusal>;

class EngineLoop {
 public:
  // Refuses everything (not_ready) until start().
  explicit EngineLoop(const EngineLoopConfig& config);
  ~EngineLoop();  // stop()
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Takes the engine over and begins. Errors: bad_input (the engine holds fewer requests than can be queued and run:
  // both numbers). REQUIRES: not started.
  Status start(std::unique_ptr<engine::Engine> engine);

  // A place for so many requests, before anything is spent on them. prompt_tokens: what is known of their prompts, in
  // all; the rest is charged by Place::add_tokens() or submit().
  // Refusals: queue_full_requests, queue_full_tokens, never_fits (more requests than the queue holds), draining,
  // not_ready, loop_failed.
  Reserved reserve(std::uint32_t requests, std::uint64_t prompt_tokens = 0);

  // A number for GenerateRequest::family that no other has.
  std::uint64_t new_family() { return families_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // Whether submit() would refuse the request for what it is; counted like a refusal of submit(). With several requests
  // to one answer, all are asked about before the first is submitted. REQUIRES: a place was given out.
  std::optional<Refusal> check(const engine::GenerateRequest& request) const;

  // Hands over one request of a place. Refusals: never_fits and bad_request, found out on this thread without waiting
  // for a step; queue_full_tokens; draining, loop_failed. REQUIRES: place.requests() > 0, a sink.
  Submitted submit(Place& place, Submission submission);
  // The same with a place of its own: where nothing expensive comes before.
  Submitted submit(Submission submission);

  // Ends a stream in whatever state it is. It gets on_end(cancelled), unless it came to its own end first. Unknown and
  // ended ones are ignored.
  void cancel(StreamId id);

  // Accepts nothing more; lets what was accepted run until the moment (platform::monotonic_ns()), then ends the rest
  // (shutdown). Again: another moment.
  void drain(std::uint64_t deadline_ns);
  // Whether all have ended; waits for it at most until the moment.
  bool wait_drained(std::uint64_t until_ns) const { return mailbox_->wait_empty(until_ns); }
  // Ends everything (shutdown) and the thread. Idempotent.
  void stop();

  LoopState state() const { return mailbox_->state(); }
  // When the loop last began a turn; 0 = never. Old, and the loop hangs in a step or a sink.
  std::uint64_t heartbeat_ns() const { return heartbeat_ns_.load(std::memory_order_relaxed); }
  LoopStats stats() const;
  // For a Retry-After header: seconds until the queue of now is served at the rate measured, 1 to 120.
  std::uint32_t retry_after_s() const;

 private:
  std::optional<Refusal> find_fault(const engine::GenerateRequest& request) const;

  const EngineLoopConfig config_;
  const std::shared_ptr<Mailbox> mailbox_;
  Published<LoopStats> stats_;
  std::atomic<std::uint64_t> heartbeat_ns_{0}, next_id_{0}, families_{0};
  std::unique_ptr<engine::Engine> engine_;  // set before the first place is given out; then the loop's
  engine::EffectiveSettings settings_;
  std::thread thread_;
};

}  // namespace kvasir::server
