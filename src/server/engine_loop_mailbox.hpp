// Between the threads that submit and the loop's thread: the bounded queue's accounts, requests and cancels on their
// way, and the loop's state. Internal to the engine loop.
//
// A request is charged (one request, its prompt's tokens) from the moment its place is reserved, which is before
// anything expensive is done for it, until the engine first schedules it or it ends. So what is refused has cost
// nothing, and a burst cannot slip through between check and count.
//
// Thread rule: any thread, but take(), ended() and fail(): the loop's. One mutex, held for moments.
// Invariants: charged() = what places hold + what letters and queued streams hold; open() = streams accepted whose
// on_end() has not returned.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "engine/request.hpp"
#include "server/drain_rate.hpp"
#include "server/engine_loop_stats.hpp"
#include "server/token_sink.hpp"

namespace kvasir::server {

struct Refusal {
  RefusalReason reason = RefusalReason::bad_request;
  Error error;                          // for people; never_fits and the full queues name both numbers
  std::uint64_t wanted = 0, limit = 0;  // those numbers: requests, or tokens
};

struct QueueLimits {
  std::uint32_t requests = 0;
  std::uint64_t tokens = 0;        // 0 = no bound
  std::uint32_t idle_turn_ms = 0;  // how long take() waits at most
};

struct QueueCharge {
  std::uint32_t requests = 0;
  std::uint64_t tokens = 0;  // of prompts
};

// An accepted request on its way to the loop.
struct Letter {
  StreamId id;
  engine::GenerateRequest request;
  std::shared_ptr<TokenSink> sink;
  std::uint64_t queued_ns = 0;
};

// What the loop finds at a turn.
struct Mail {
  std::vector<Letter> letters;
  std::vector<StreamId> cancels;
  bool stop = false;
  bool draining = false;
  std::uint64_t deadline_ns = 0;  // of the drain
};

class Mailbox {
 public:
  explicit Mailbox(const QueueLimits& limits) : limits_(limits) {}

  // Charges, or says why not. A prompt larger than the whole token bound passes while no other waits: it may be slow to
  // serve, but it is not to be refused for ever.
  std::optional<Refusal> reserve(const QueueCharge& charge, std::uint64_t now_ns);
  // These have been scheduled or have ended, or their place is not used.
  void leave(const QueueCharge& charge, std::uint64_t now_ns);
  // Hands a request over. Its charge is taken out of `held`, tokens that `held` lacks are charged now; refused, `held`
  // is what it was. REQUIRES: held.requests > 0.
  std::optional<Refusal> post(Letter letter, QueueCharge& held);
  void cancel(StreamId id);
  // Counts a refusal that somebody else found out.
  void count(RefusalReason reason);

  void open_for_requests();
  void drain(std::uint64_t deadline_ns);
  void request_stop();
  LoopState state() const;
  // Waits until every accepted stream has ended, at most until the moment. False: some have not.
  bool wait_empty(std::uint64_t until_ns) const;
  std::uint32_t retry_after_s(std::uint64_t now_ns) const;
  // The part of the statistics that is kept here.
  void fill(LoopStats& stats) const;

  // Replaces `mail` by what came since. With nothing to do and `idle`, waits for something, at most one idle turn.
  void take(Mail& mail, bool idle);
  // So many streams' on_end() has returned.
  void ended(std::uint32_t streams);
  // The loop ends by an exception: nothing is accepted any more; mail.letters become those not taken yet.
  void fail(Mail& mail);
  // It ends as asked, or never began.
  void close();

 private:
  std::optional<Refusal> refuse(RefusalReason reason, std::string message, std::uint64_t wanted = 0,
                                std::uint64_t limit = 0);
  std::optional<Refusal> refuse_by_state();
  std::optional<Refusal> refuse_by_tokens(std::uint64_t tokens);

  const QueueLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;          // for the loop: mail, or stop
  mutable std::condition_variable emptied_;  // open_ is 0
  LoopState state_ = LoopState::not_ready;
  bool stop_ = false;
  std::uint64_t deadline_ns_ = 0;
  QueueCharge charged_;
  std::uint32_t open_ = 0;
  std::uint64_t submitted_ = 0;
  std::array<std::uint64_t, kRefusalReasons> refused_{};
  DrainRate rate_;
  std::vector<Letter> letters_;
  std::vector<StreamId> cancels_;
};

// A place in the queue, held while the request is rendered and tokenized. What is not used is given back.
// Thread rule: one owner; move-only. May outlive the loop.
class Place {
 public:
  Place() = default;
  Place(std::shared_ptr<Mailbox> mailbox, const QueueCharge& charge) : mailbox_(std::move(mailbox)), held_(charge) {}
  Place(Place&& other) noexcept;
  Place& operator=(Place&& other) noexcept;
  ~Place() { give_back(); }

  // Requests that can still be submitted with it.
  std::uint32_t requests() const { return held_.requests; }
  // Charges prompt tokens that were not known when the place was reserved, for all requests at once, so that either all
  // choices of a prompt are accepted or none.
  std::optional<Refusal> add_tokens(std::uint64_t tokens);

  // For EngineLoop::submit().
  QueueCharge& held() { return held_; }

 private:
  void give_back();

  std::shared_ptr<Mailbox> mailbox_;
  QueueCharge held_;
};

}  // namespace kvasir::server
