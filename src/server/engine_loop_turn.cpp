#include "server/engine_loop_turn.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "platform/clock.hpp"

namespace kvasir::server {
namespace {

EndReason end_reason(engine::FinishReason finish) {
  switch (finish) {
    case engine::FinishReason::stop:
      return EndReason::stop;
    case engine::FinishReason::length:
      return EndReason::length;
    case engine::FinishReason::error:
    case engine::FinishReason::none:
      break;
  }
  return EndReason::error;
}

// Calls the hook at both ends of its life.
class Telling {
 public:
  explicit Telling(const TellHook& hook) : hook_(hook) {
    if (hook_) hook_(true);
  }
  ~Telling() {
    if (hook_) hook_(false);
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  const TellHook& hook_;
};

}  // namespace

LoopTurns::LoopTurns(engine::Engine& engine, Mailbox& mailbox, Published<LoopStats>& published,
                     std::atomic<std::uint64_t>& heartbeat_ns, bool check_invariants, StepHook on_step,
                     TellHook on_telling)
    : engine_(engine),
      mailbox_(mailbox),
      published_(published),
      heartbeat_ns_(heartbeat_ns),
      check_invariants_(check_invariants),
      on_step_(std::move(on_step)),
      on_telling_(std::move(on_telling)) {
  const engine::EffectiveSettings settings = engine.effective();
  outputs_.reserve(settings.max_num_batched_tokens);
  output_streams_.reserve(settings.max_num_batched_tokens);
  ends_.reserve(settings.max_num_seqs);
  settle();  // what there is can be asked for before the first turn has ended
}

void LoopTurns::run() {
  try {
    while (turn()) {
    }
  } catch (const std::exception& error) {
    fail(error.what());
  } catch (...) {
    fail("an exception that is no std::exception");
  }
}

bool LoopTurns::turn() {
  heartbeat_ns_.store(platform::monotonic_ns(), std::memory_order_relaxed);
  mailbox_.take(mail_, !engine_.has_work());
  const std::uint64_t begin_ns = platform::monotonic_ns();
  heartbeat_ns_.store(begin_ns, std::memory_order_relaxed);

  for (Letter& letter : mail_.letters) accept(letter);
  for (const StreamId id : mail_.cancels) cancel(id, EndReason::cancelled);
  if (mail_.stop || (mail_.draining && begin_ns >= mail_.deadline_ns)) cancel_all(EndReason::shutdown);
  if (!ends_.empty()) {  // they need not wait for the step
    settle();
    tell_ends();
  }
  step();
  ++stats_.turns;
  settle();
  tell();
  return !mail_.stop;
}

// The sink is taken out of the letter last: should anything throw before, fail() finds it there.
void LoopTurns::accept(Letter& letter) {
  auto stream = std::make_unique<Stream>();
  EndEvent& state = stream->state;
  state.stream = letter.id;
  state.choice = letter.request.sampling.choice;
  state.prompt_tokens = static_cast<std::uint32_t>(letter.request.prompt.size());  // the context bounds it
  state.times.queued_ns = letter.queued_ns;
  Result<RequestId> request = engine_.submit(std::move(letter.request));
  if (!request.ok()) {  // memory that the system refuses now, or blocks taken out of use
    state.reason = EndReason::error;
    state.error = std::move(request).error();
    state.times.end_ns = platform::monotonic_ns();
    leave_queue(*stream);
    ++stats_.ended[static_cast<std::size_t>(state.reason)];
    Stream& ended = *ends_.emplace_back(std::move(stream));
    ended.sink = std::move(letter.sink);
    return;
  }
  stream->request = *request;
  by_id_.emplace(state.stream, *request);
  Stream& running = *by_request_.emplace(*request, std::move(stream)).first->second;
  running.sink = std::move(letter.sink);
}

void LoopTurns::cancel(StreamId id, EndReason reason) {
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return;  // it came to its own end first
  const RequestId request = at->second;
  KV_CHECK(engine_.cancel(request), "a stream that has not ended is known to the engine");
  end(request, reason, platform::monotonic_ns());
}

void LoopTurns::cancel_all(EndReason reason) {
  scratch_.clear();
  for (const auto& [request, stream] : by_request_) scratch_.push_back(request);
  for (const RequestId request : scratch_) cancel(by_request_.at(request)->state.stream, reason);
}

void LoopTurns::step() {
  outputs_.clear();
  output_streams_.clear();
  if (!engine_.has_work()) return;
  const std::uint64_t begin_ns = platform::monotonic_ns(), generated_before = stats_.generated_tokens;
  const engine::StepReport report = engine_.step(outputs_);
  if (check_invariants_) engine_.check_invariants();
  for (const RequestId request : engine_.admitted()) {
    Stream& stream = *by_request_.at(request);
    // Again, when it goes on with a shifted context.
    if (stream.state.times.scheduled_ns == 0) stream.state.times.scheduled_ns = begin_ns;
    leave_queue(stream);
  }
  stepped_ns_ = platform::monotonic_ns();
  for (const engine::TokenOutput& output : outputs_) note(output);
  for (const engine::TokenOutput& output : outputs_) {
    if (output.finish != engine::FinishReason::none) conclude(output);
  }
  count_step(report);
  if (report.ran && on_step_) {
    on_step_(report, static_cast<std::uint32_t>(stats_.generated_tokens - generated_before));
  }
}

void LoopTurns::count_step(const engine::StepReport& report) {
  stats_.waiting_by_reason = {};
  stats_.waiting_by_reason[static_cast<std::size_t>(report.waiting)] = 1;  // settle() puts the number in
  if (!report.ran) return;
  ++stats_.steps;
  stats_.prompt_tokens_computed += report.prefill_tokens;
  stats_.forward_s += report.forward_s;
  stats_.step_s += report.total_s;
}

void LoopTurns::leave_queue(Stream& stream) {
  if (!stream.queued) return;
  stream.queued = false;
  ++left_.requests;
  left_.tokens += stream.state.prompt_tokens;
}

// What an output changes, before anybody is told.
void LoopTurns::note(const engine::TokenOutput& output) {
  Stream& stream = *by_request_.at(output.request);
  output_streams_.push_back(&stream);
  EndEvent& state = stream.state;
  if (output.prompt) {
    ++stats_.scored_prompt_tokens;
  } else if (output.token >= 0) {
    ++stats_.generated_tokens;
    ++state.completion_tokens;
    if (state.times.first_token_ns == 0) state.times.first_token_ns = stepped_ns_;
  }
}

// All answers of a beam search end in one step; the first tells how the stream ends.
void LoopTurns::conclude(const engine::TokenOutput& output) {
  const auto at = by_request_.find(output.request);
  if (at == by_request_.end()) return;
  EndEvent& state = at->second->state;
  state.stop_index = output.stop_index;
  state.stop_token = output.stop_token;
  const EndReason reason = end_reason(output.finish);
  if (reason == EndReason::error) state.error = Error{ErrorCode::does_not_fit, std::string(output.error)};
  end(output.request, reason, stepped_ns_);
}

void LoopTurns::end(RequestId request, EndReason reason, std::uint64_t now_ns) {
  const auto at = by_request_.find(request);
  Stream& stream = *at->second;
  stream.state.reason = reason;
  stream.state.times.end_ns = now_ns;
  leave_queue(stream);
  ++stats_.ended[static_cast<std::size_t>(reason)];
  by_id_.erase(stream.state.stream);
  ends_.push_back(std::move(at->second));
  by_request_.erase(at);
}

void LoopTurns::settle() {
  if (left_.requests > 0) mailbox_.leave(std::exchange(left_, QueueCharge{}), platform::monotonic_ns());
  const engine::EngineStats engine = engine_.stats();
  stats_.waiting = engine.waiting;
  stats_.running = engine.running;
  for (std::uint32_t& waiting : stats_.waiting_by_reason) waiting = waiting > 0 ? engine.waiting : 0;
  stats_.cache = engine.cache;
  const std::vector<engine::GroupAccounting> groups = engine_.cache_groups();
  stats_.group_count = static_cast<std::uint32_t>(groups.size());
  std::copy(groups.begin(), groups.end(), stats_.groups.begin());
  published_.publish(stats_);
}

void LoopTurns::tell() {
  if (outputs_.empty() && ends_.empty()) return;
  const Telling telling(on_telling_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].token >= 0) tell_token(*output_streams_[i], outputs_[i]);
  }
  tell_ends();
}

void LoopTurns::tell_token(Stream& stream, const engine::TokenOutput& output) {
  event_.stream = stream.state.stream;
  event_.choice = stream.state.choice + output.choice;
  event_.token = output.token;
  event_.position = output.position;
  event_.prompt = output.prompt;
  event_.text.assign(output.text);
  event_.has_logprob = output.has_logprob;
  event_.logprob = output.logprob;
  event_.rank = output.rank;
  event_.top_logprobs.assign(output.top_logprobs.begin(), output.top_logprobs.end());
  event_.prompt_tokens = output.prompt_tokens;
  event_.completion_tokens = output.completion_tokens;
  event_.finish = output.finish;
  event_.stop_token = output.stop_token;
  event_.at_ns = stepped_ns_;
  event_.times = stream.state.times;
  event_.times.end_ns = 0;
  stream.sink->on_token(event_);
}

void LoopTurns::tell_ends() {
  if (ends_.empty()) return;
  for (std::unique_ptr<Stream>& slot : ends_) {
    // Taken out first: should the sink throw, its stream is not told again.
    const std::unique_ptr<Stream> stream = std::move(slot);
    stream->sink->on_end(stream->state);
  }
  mailbox_.ended(static_cast<std::uint32_t>(ends_.size()));
  ends_.clear();
}

// The engine may be in the middle of a step: it is not touched again.
void LoopTurns::fail(const char* what) {
  std::vector<Letter> undelivered = std::move(mail_.letters);  // accept() empties those it took
  mailbox_.fail(mail_);
  const Error error{ErrorCode::internal, std::string("the engine loop failed: ") + what};
  std::uint32_t ended = static_cast<std::uint32_t>(ends_.size());
  const auto tell_failure = [&error](TokenSink& sink, EndEvent state) {
    state.reason = EndReason::error;
    state.error = error;
    state.times.end_ns = platform::monotonic_ns();
    try {
      sink.on_end(state);
    } catch (...) {  // the others are told all the same
    }
  };
  for (const std::unique_ptr<Stream>& stream : ends_) {
    if (stream != nullptr) tell_failure(*stream->sink, stream->state);
  }
  for (const auto& [request, stream] : by_request_) tell_failure(*stream->sink, stream->state);
  ended += static_cast<std::uint32_t>(by_request_.size());
  for (std::vector<Letter>* letters : {&undelivered, &mail_.letters}) {
    for (const Letter& letter : *letters) {
      if (letter.sink == nullptr) continue;
      EndEvent state;
      state.stream = letter.id;
      state.choice = letter.request.sampling.choice;
      state.times.queued_ns = letter.queued_ns;
      tell_failure(*letter.sink, state);
      ++ended;
    }
  }
  ends_.clear();
  by_request_.clear();
  by_id_.clear();
  mailbox_.ended(ended);
}

}  // namespace kvasir::server
