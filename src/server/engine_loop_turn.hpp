// What the engine loop's thread does, turn after turn: mail in, one step, statistics, events out. Internal to the loop.
//
//   turn:  mail in -> to the engine: submit, cancel -> step -> count -> publish -> events out
//
// Thread rule: the loop's thread alone, but for the constructor, which publishes the first statistics before that thread begins.
// Invariants: a stream is in both maps from accept() until it is moved to ends_; what is in ends_ is told once and
// dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "server/engine_loop_mailbox.hpp"
#include "server/engine_loop_stats.hpp"
#include "server/published.hpp"
#include "server/token_sink.hpp"

namespace kvasir::server {

class LoopTurns {
 public:
  // All of them outlive it.
  LoopTurns(engine::Engine& engine, Mailbox& mailbox, Published<LoopStats>& published,
            std::atomic<std::uint64_t>& heartbeat_ns, bool check_invariants,
            StepHook on_step, TellHook on_telling);

  // Turns until the mailbox says stop. An exception, ours or a sink's, ends every stream with an error.
  void run();

 private:
  struct Stream {
    RequestId request;
    std::shared_ptr<TokenSink> sink;
    EndEvent state;      // what is known so far: its end event in the making
    bool queued = true;  // still charged to the queue
  };

  bool turn();
  void accept(Letter& letter);
  void cancel(StreamId id, EndReason reason);
  void cancel_all(EndReason reason);
  void step();
  void count_step(const engine::StepReport& report);
  void leave_queue(Stream& stream);
  void note(const engine::TokenOutput& output);
  void conclude(const engine::TokenOutput& output);
  void end(RequestId request, EndReason reason, std::uint64_t now_ns);
  // What changed becomes visible: the queue's accounts, the statistics.
  void settle();
  void tell();
  void tell_token(Stream& stream, const engine::TokenOutput& output);
  void tell_ends();
  void fail(const char* what);

  engine::Engine& engine_;
  Mailbox& mailbox_;
  Published<LoopStats>& published_;
  std::atomic<std::uint64_t>& heartbeat_ns_;
  const bool check_invariants_;
  const StepHook on_step_;
  const TellHook on_telling_;

  Mail mail_;
  std::unordered_map<RequestId, std::unique_ptr<Stream>> by_request_;
  std::unordered_map<StreamId, RequestId> by_id_;
  std::vector<engine::TokenOutput> outputs_;   // of the last step
  std::vector<Stream*> output_streams_;        // whose each is
  std::vector<std::unique_ptr<Stream>> ends_;  // ended, not told yet
  std::vector<RequestId> scratch_;
  std::uint64_t stepped_ns_ = 0;  // when they were there
  QueueCharge left_;              // of the turn
  TokenEvent event_;              // reused, so that its buffers are
  LoopStats stats_;
};

}  // namespace kvasir::server
