#include "server/engine_loop.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"
#include "platform/clock.hpp"
#include "platform/thread_name.hpp"
#include "server/engine_loop_turn.hpp"

namespace kvasir::server {

EngineLoop::EngineLoop(const EngineLoopConfig& config)
    : config_(config),
      mailbox_(std::make_shared<Mailbox>(
          QueueLimits{config.max_queued_requests, config.max_queued_tokens, config.idle_turn_ms})) {}

EngineLoop::~EngineLoop() { stop(); }

Status EngineLoop::start(std::unique_ptr<engine::Engine> engine) {
  KV_CHECK(engine != nullptr && engine_ == nullptr, "one engine, once");
  settings_ = engine->effective();
  const std::uint64_t most = std::uint64_t{config_.max_queued_requests} + settings_.max_num_seqs;
  if (settings_.max_queued < most) {
    return Error{ErrorCode::bad_input,
                 fmt::format("the engine's max-queued is {}, valid: at least {} (max-num-queued-reqs {} + max-num-seqs "
                             "{})",
                             settings_.max_queued, most, config_.max_queued_requests, settings_.max_num_seqs)};
  }
  engine_ = std::move(engine);
  auto turns = std::make_unique<LoopTurns>(*engine_, *mailbox_, stats_, heartbeat_ns_, config_.check_invariants,
                                           config_.on_step, config_.on_telling);
  thread_ = std::thread([turns = std::move(turns)] {
    platform::name_this_thread("kv-step");
    turns->run();
  });
  mailbox_->open_for_requests();
  return ok_status();
}

Reserved EngineLoop::reserve(std::uint32_t requests, std::uint64_t prompt_tokens) {
  KV_CHECK(requests > 0, "a place is for requests");
  const QueueCharge charge{requests, prompt_tokens};
  if (auto refusal = mailbox_->reserve(charge, platform::monotonic_ns())) return std::move(*refusal);
  return Place(mailbox_, charge);
}

// What needs only the request and what never changes of the engine.
std::optional<Refusal> EngineLoop::find_fault(const engine::GenerateRequest& request) const {
  Status valid = engine_->check(request);
  if (valid.ok()) return std::nullopt;
  const std::uint64_t prompt = request.prompt.size();
  const std::uint64_t wanted = prompt + request.max_tokens.value_or(1);
  if (prompt >= settings_.max_model_len) {
    return Refusal{RefusalReason::never_fits, std::move(valid).error(), wanted, settings_.max_model_len};
  }
  if (valid.error().code == ErrorCode::does_not_fit) {
    return Refusal{RefusalReason::never_fits, std::move(valid).error(), wanted, settings_.max_rows};
  }
  return Refusal{RefusalReason::bad_request, std::move(valid).error()};
}

std::optional<Refusal> EngineLoop::check(const engine::GenerateRequest& request) const {
  std::optional<Refusal> refusal = find_fault(request);
  if (refusal) mailbox_->count(refusal->reason);
  return refusal;
}

Submitted EngineLoop::submit(Place& place, Submission submission) {
  KV_CHECK(place.requests() > 0 && submission.sink != nullptr, "a place and a sink");
  if (auto refusal = check(submission.request)) return std::move(*refusal);
  const StreamId id(next_id_.fetch_add(1, std::memory_order_relaxed));
  Letter letter{id, std::move(submission.request), std::move(submission.sink), platform::monotonic_ns()};
  if (auto refusal = mailbox_->post(std::move(letter), place.held())) return std::move(*refusal);
  return id;
}

Submitted EngineLoop::submit(Submission submission) {
  Reserved reserved = reserve(1, submission.request.prompt.size());
  if (auto* refusal = std::get_if<Refusal>(&reserved)) return std::move(*refusal);
  return submit(std::get<Place>(reserved), std::move(submission));
}

void EngineLoop::cancel(StreamId id) { mailbox_->cancel(id); }

void EngineLoop::drain(std::uint64_t deadline_ns) { mailbox_->drain(deadline_ns); }

void EngineLoop::stop() {
  KV_CHECK(thread_.get_id() != std::this_thread::get_id(), "a sink does not stop the loop that calls it");
  mailbox_->request_stop();
  if (thread_.joinable()) thread_.join();
  mailbox_->close();
}

LoopStats EngineLoop::stats() const {
  LoopStats stats = stats_.read();
  mailbox_->fill(stats);
  return stats;
}

std::uint32_t EngineLoop::retry_after_s() const { return mailbox_->retry_after_s(platform::monotonic_ns()); }

}  // namespace kvasir::server
