#include "server/engine_loop_mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "platform/clock.hpp"

namespace kvasir::server {
namespace {

// One wait is cut in pieces no longer than this, so that no moment overflows the clock's arithmetic.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(60);

}  // namespace

std::optional<Refusal> Mailbox::refuse(RefusalReason reason, std::string message, std::uint64_t wanted,
                                       std::uint64_t limit) {
  ++refused_[static_cast<std::size_t>(reason)];
  return Refusal{reason, {ErrorCode::exhausted, std::move(message)}, wanted, limit};
}

std::optional<Refusal> Mailbox::refuse_by_state() {
  switch (state_) {
    case LoopState::ready:
      return std::nullopt;
    case LoopState::not_ready:
      return refuse(RefusalReason::not_ready, "the model is still loading");
    case LoopState::draining:
    case LoopState::stopped:
      return refuse(RefusalReason::draining, "the server is shutting down");
    case LoopState::failed:
      return refuse(RefusalReason::loop_failed, "the engine has failed; the server must restart");
  }
  return std::nullopt;
}

std::optional<Refusal> Mailbox::refuse_by_tokens(std::uint64_t tokens) {
  if (limits_.tokens == 0 || charged_.tokens == 0) return std::nullopt;
  if (charged_.tokens < limits_.tokens && tokens <= limits_.tokens - charged_.tokens) return std::nullopt;
  return refuse(RefusalReason::queue_full_tokens,
                fmt::format("the queue holds prompts of {} tokens and {} more would exceed its {}", charged_.tokens,
                            tokens, limits_.tokens),
                tokens, limits_.tokens);
}

std::optional<Refusal> Mailbox::reserve(const QueueCharge& charge, std::uint64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  if (auto refusal = refuse_by_state()) return refusal;
  if (charge.requests > limits_.requests) {
    return refuse(RefusalReason::never_fits,
                  fmt::format("{} answers are asked for at once and the queue holds {} requests", charge.requests,
                              limits_.requests),
                  charge.requests, limits_.requests);
  }
  if (charge.requests > limits_.requests - std::min(limits_.requests, charged_.requests)) {
    return refuse(RefusalReason::queue_full_requests,
                  fmt::format("{} requests wait already and {} more would exceed the queue's {}", charged_.requests,
                              charge.requests, limits_.requests),
                  charge.requests, limits_.requests);
  }
  if (auto refusal = refuse_by_tokens(charge.tokens)) return refusal;
  if (charged_.requests == 0) rate_.begin(now_ns);
  charged_.requests += charge.requests;
  charged_.tokens += charge.tokens;
  return std::nullopt;
}

void Mailbox::leave(const QueueCharge& charge, std::uint64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  KV_CHECK(charge.requests <= charged_.requests && charge.tokens <= charged_.tokens, "what leaves was charged");
  charged_.requests -= charge.requests;
  charged_.tokens -= charge.tokens;
  for (std::uint32_t i = 0; i < charge.requests; ++i) rate_.depart(now_ns);
  if (charged_.requests == 0) rate_.empty();
}

std::optional<Refusal> Mailbox::post(Letter letter, QueueCharge& held) {
  KV_CHECK(held.requests > 0, "a place for the request");
  const std::uint64_t tokens = letter.request.prompt.size();
  const std::uint64_t paid = std::min(held.tokens, tokens);
  {
    const std::scoped_lock lock(mutex_);
    if (auto refusal = refuse_by_state()) return refusal;
    if (paid < tokens) {
      if (auto refusal = refuse_by_tokens(tokens - paid)) return refusal;
    }
    charged_.tokens += tokens - paid;
    letters_.push_back(std::move(letter));
    ++open_;
    ++submitted_;
  }
  --held.requests;
  held.tokens -= paid;
  changed_.notify_one();
  return std::nullopt;
}

void Mailbox::cancel(StreamId id) {
  {
    const std::scoped_lock lock(mutex_);
    if (open_ == 0) return;  // nobody is there any more, and perhaps no loop that would take it
    cancels_.push_back(id);
  }
  changed_.notify_one();
}

void Mailbox::count(RefusalReason reason) {
  const std::scoped_lock lock(mutex_);
  ++refused_[static_cast<std::size_t>(reason)];
}

void Mailbox::open_for_requests() {
  const std::scoped_lock lock(mutex_);
  if (state_ == LoopState::not_ready) state_ = LoopState::ready;
}

void Mailbox::drain(std::uint64_t deadline_ns) {
  const std::scoped_lock lock(mutex_);
  deadline_ns_ = deadline_ns;
  if (state_ == LoopState::ready || state_ == LoopState::not_ready) state_ = LoopState::draining;
}

void Mailbox::request_stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
}

LoopState Mailbox::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

bool Mailbox::wait_empty(std::uint64_t until_ns) const {
  std::unique_lock lock(mutex_);
  while (open_ > 0) {
    const std::uint64_t now_ns = platform::monotonic_ns();
    if (now_ns >= until_ns) return false;
    const std::uint64_t left = std::min<std::uint64_t>(until_ns - now_ns, kLongestWait.count());
    emptied_.wait_for(lock, std::chrono::nanoseconds(left));
  }
  return true;
}

std::uint32_t Mailbox::retry_after_s(std::uint64_t now_ns) const {
  const std::scoped_lock lock(mutex_);
  return rate_.seconds_to_serve(charged_.requests, now_ns);
}

void Mailbox::fill(LoopStats& stats) const {
  const std::scoped_lock lock(mutex_);
  stats.state = state_;
  stats.queued_requests = charged_.requests;
  stats.queued_tokens = charged_.tokens;
  stats.submitted = submitted_;
  stats.refused = refused_;
}

void Mailbox::take(Mail& mail, bool idle) {
  mail.letters.clear();
  mail.cancels.clear();
  std::unique_lock lock(mutex_);
  if (idle) {
    changed_.wait_for(lock, std::chrono::milliseconds(limits_.idle_turn_ms),
                      [this] { return stop_ || !letters_.empty() || !cancels_.empty(); });
  }
  mail.letters.swap(letters_);
  mail.cancels.swap(cancels_);
  mail.stop = stop_;
  mail.draining = state_ == LoopState::draining;
  mail.deadline_ns = deadline_ns_;
  if (stop_ && state_ != LoopState::failed) state_ = LoopState::stopped;
}

void Mailbox::ended(std::uint32_t streams) {
  bool empty = false;
  {
    const std::scoped_lock lock(mutex_);
    KV_CHECK(streams <= open_, "what ends was accepted");
    open_ -= streams;
    empty = open_ == 0;
  }
  if (empty) emptied_.notify_all();
}

void Mailbox::fail(Mail& mail) {
  mail.letters.clear();
  const std::scoped_lock lock(mutex_);
  mail.letters.swap(letters_);
  state_ = LoopState::failed;
}

void Mailbox::close() {
  const std::scoped_lock lock(mutex_);
  if (state_ != LoopState::failed) state_ = LoopState::stopped;
}

Place::Place(Place&& other) noexcept
    : mailbox_(std::move(other.mailbox_)), held_(std::exchange(other.held_, QueueCharge{})) {}

Place& Place::operator=(Place&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  mailbox_ = std::move(other.mailbox_);
  held_ = std::exchange(other.held_, QueueCharge{});
  return *this;
}

std::optional<Refusal> Place::add_tokens(std::uint64_t tokens) {
  KV_CHECK(mailbox_ != nullptr, "a place that was reserved");
  if (auto refusal = mailbox_->reserve({.requests = 0, .tokens = tokens}, platform::monotonic_ns())) return refusal;
  held_.tokens += tokens;
  return std::nullopt;
}

void Place::give_back() {
  if (mailbox_ == nullptr || (held_.requests == 0 && held_.tokens == 0)) return;
  mailbox_->leave(std::exchange(held_, QueueCharge{}), platform::monotonic_ns());
}

}  // namespace kvasir::server
