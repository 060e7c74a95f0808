// A server under simulated time: nothing waits, every nanosecond is decided by the test.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "load/transport.hpp"

namespace kvasir::load {

class SimulatedTransport final : public Transport {
 public:
  // What a request gets: times since it was sent, or an error after `fails_after_ns`.
  struct Reply {
    std::vector<std::uint64_t> tokens_after_ns = {};
    std::string error_kind = {};
    std::uint64_t fails_after_ns = 0;
  };
  using Server = std::function<Reply(std::uint64_t id, std::uint64_t sent_ns)>;

  explicit SimulatedTransport(Server server) : server_(std::move(server)) {}

  struct Sent {
    std::uint64_t id, ns;
    std::string body;
  };
  std::vector<Sent> sent;

  std::uint64_t now_ns() override { return now_; }

  void send(std::uint64_t id, std::string body) override {
    sent.push_back({id, now_, std::move(body)});
    const Reply reply = server_(id, now_);
    Outcome outcome;
    outcome.id = id;
    outcome.error_kind = reply.error_kind;
    outcome.ended_ns = now_ + reply.fails_after_ns;
    for (const std::uint64_t after : reply.tokens_after_ns) {
      outcome.answer.token_ns.push_back(now_ + after);
      outcome.answer.text += "x";
      outcome.ended_ns = std::max(outcome.ended_ns, now_ + after);
    }
    running_.emplace(outcome.ended_ns, std::move(outcome));
  }

  void wait(std::uint64_t until_ns, std::vector<Outcome>& ended) override {
    if (running_.empty() || running_.begin()->first > until_ns) {
      now_ = std::max(now_, until_ns);
      return;
    }
    now_ = std::max(now_, running_.begin()->first);
    while (!running_.empty() && running_.begin()->first <= now_) {
      ended.push_back(std::move(running_.begin()->second));
      running_.erase(running_.begin());
    }
  }

  void cancel_all() override {
    std::multimap<std::uint64_t, Outcome> cancelled;
    for (auto& [ns, outcome] : running_) {
      outcome.error_kind = "cancelled";
      outcome.ended_ns = now_;
      cancelled.emplace(now_, std::move(outcome));
    }
    running_ = std::move(cancelled);
  }

 private:
  Server server_;
  std::multimap<std::uint64_t, Outcome> running_;
  std::uint64_t now_ = 1'000'000'000;
};

}  // namespace kvasir::load
