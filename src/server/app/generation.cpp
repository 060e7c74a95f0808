#include "server/app/generation.hpp"

#include <fmt/format.h>

#include <utility>

#include "server/app/replies.hpp"

namespace kvasir::server {
namespace {

engine::FinishReason finish_of(EndReason reason) {
  return reason == EndReason::stop ? engine::FinishReason::stop : engine::FinishReason::length;
}

api::ApiError failure_of(const EndEvent& event) {
  if (event.reason == EndReason::shutdown) {
    return {503, "server_error", "server_shutting_down", "", "the server ends before the answer is complete", {}, true};
  }
  return api::from_error(event.error.value_or(Error{ErrorCode::internal, "the engine gave no reason"}), "");
}

// Only in a vocabulary with fewer tokens than beams and end tokens together.
api::ApiError too_few_answers() {
  return api::from_error(Error{ErrorCode::internal, "the beam search found fewer answers than were asked for"}, "");
}

}  // namespace

// Where the events of one stream go.
class Generation::Stream final : public TokenSink {
 public:
  Stream(std::shared_ptr<Generation> generation, std::size_t index)
      : generation_(std::move(generation)), index_(index) {}
  void on_token(const TokenEvent& event) override { generation_->on_token(index_, event); }
  void on_end(const EndEvent& event) override { generation_->on_end(index_, event); }

 private:
  const std::shared_ptr<Generation> generation_;
  const std::size_t index_;
};

Generation::Generation(AppContext& app, ServedModel& model, Entry entry)
    : app_(app), model_(model), entry_(std::move(entry)) {}

void Generation::watch() {
  entry_.responder->on_disconnect([weak = weak_from_this()](DisconnectReason) {
    if (const auto self = weak.lock()) self->cancel();
  });
}

void Generation::cancel() {
  std::vector<StreamId> streams;
  {
    const std::scoped_lock lock(mutex_);
    if (cancelled_.exchange(true)) return;
    streams = streams_;
  }
  for (const StreamId stream : streams) app_.loop.cancel(stream);
}

void Generation::refuse(const api::ApiError& error) {
  entry_.slot = {};
  entry_.place = {};
  more_ = {};
  reply(*entry_.responder, error);
}

std::optional<api::ApiError> Generation::refused(const Refusal& refusal, std::string_view prompt_field) {
  model_.metrics().refused(refusal.reason);
  return api_error(refusal, app_.loop.retry_after_s(), prompt_field);
}

std::optional<api::ApiError> Generation::reserve(std::size_t streams, std::string_view field) {
  if (streams <= 1) return std::nullopt;
  Reserved reserved = app_.loop.reserve(static_cast<std::uint32_t>(streams - 1));
  if (const auto* refusal = std::get_if<Refusal>(&reserved)) return refused(*refusal, field);
  more_ = std::move(std::get<Place>(reserved));
  return std::nullopt;
}

// What the engine would refuse is found before anything is submitted, and the prompts' tokens are charged together.
std::optional<Refusal> Generation::claim(const std::vector<engine::GenerateRequest>& requests) {
  std::uint64_t rest = 0;
  for (const engine::GenerateRequest& request : requests) {
    if (auto refusal = app_.loop.check(request)) return refusal;
    rest += request.prompt.size();
  }
  const std::uint64_t first = requests.front().prompt.size();
  rest -= first;
  if (auto refusal = entry_.place.add_tokens(first)) return refusal;
  return rest > 0 ? more_.add_tokens(rest) : std::nullopt;
}

std::optional<Refusal> Generation::submit_all(std::vector<engine::GenerateRequest> requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Place& place = i == 0 ? entry_.place : more_;
    Submitted submitted =
        app_.loop.submit(place, {std::move(requests[i]), std::make_shared<Stream>(shared_from_this(), i)});
    if (auto* refusal = std::get_if<Refusal>(&submitted)) return std::move(*refusal);
    const StreamId stream = std::get<StreamId>(submitted);
    const std::scoped_lock lock(mutex_);
    streams_.push_back(stream);
    // The client left, or the answer failed, before this one was known.
    if (cancelled_.load(std::memory_order_relaxed) || delivery_ == nullptr) app_.loop.cancel(stream);
  }
  return std::nullopt;
}

std::optional<api::ApiError> Generation::submit(Work work, std::unique_ptr<Delivery> delivery) {
  if (const auto refusal = claim(work.requests)) return refused(*refusal, work.prompt_field);
  {
    const std::scoped_lock lock(mutex_);
    shape_ = work.shape;
    seed_ = work.seed;
    seed_drawn_ = work.seed_drawn;
    search_ = work.search;
    open_ = work.requests.size();
    answers_ = search_ ? open_ * shape_.n : 0;
    ended_.resize(open_);
    scores_.resize(open_);
    for (std::size_t i = 0; i < open_; ++i) {
      if (work.requests[i].prompt_logprobs >= 0) scores_[i].positions.emplace_back();  // the first token follows nothing
    }
    scored_.resize(shape_.prompts);
    stop_ = work.requests.front().stop;
    meter_.emplace(model_.metrics(), shape_);
    delivery_ = std::move(delivery);
  }
  const std::size_t wanted = work.requests.size();
  for (std::size_t i = 0; shape_.streams > 1 && i < wanted; ++i)   // the answers to one prompt
    work.requests[i].family = i % shape_.streams == 0 ? app_.loop.new_family() : work.requests[i - 1].family;
  const auto refusal = submit_all(std::move(work.requests));
  const std::scoped_lock lock(mutex_);
  if (!refusal) {
    if (delivery_ != nullptr) delivery_->begin();
    return std::nullopt;
  }
  // The server began to end in between. What was submitted ends too, and so does the answer, if any of it went out.
  for (const StreamId stream : streams_) app_.loop.cancel(stream);
  open_ -= wanted - streams_.size();
  api::ApiError error = *refused(*refusal, work.prompt_field);
  if (const auto over = std::move(delivery_)) over->fail(error);
  return std::nullopt;
}

void Generation::tell_scores(std::size_t index) {
  Scores& scores = scores_[index];
  if (scores.told || scores.positions.empty()) return;
  scores.told = true;
  const std::size_t prompt = index / shape_.streams;
  if (!scored_[prompt]) delivery_->scored(prompt, std::move(scores.positions));
  scored_[prompt] = true;
  scores.positions = {};
}

void Generation::on_token(std::size_t index, const TokenEvent& event) {
  const std::scoped_lock lock(mutex_);
  meter_->on_token(index, event);
  if (delivery_ == nullptr || cancelled_.load(std::memory_order_relaxed)) return;
  if (event.prompt) {
    scores_[index].positions.push_back({event.has_logprob, event.logprob, event.top_logprobs});
    return;
  }
  tell_scores(index);
  tell_ended(index);
  if (delivery_ == nullptr) return;
  api::ChoiceEvent choice;
  choice.index = static_cast<std::uint32_t>(search_ ? index * shape_.n + event.choice : index);
  choice.token = event.token;
  choice.text = event.text;
  choice.has_logprob = event.has_logprob;
  choice.logprob = event.logprob;
  choice.top_logprobs = event.top_logprobs;
  choice.prompt_tokens = event.prompt_tokens;
  choice.completion_tokens = event.completion_tokens;
  choice.at_ns = event.at_ns;
  push(choice);
  if (!search_ || event.finish == engine::FinishReason::none) return;
  api::ChoiceEvent& end = ended_[index].emplace();
  end.index = choice.index;
  end.finish = event.finish;
  end.stop_token = event.stop_token;
  end.prompt_tokens = event.prompt_tokens;
  end.completion_tokens = event.completion_tokens;
}

// An answer of a search ends when the next one begins, or with the stream: by then the request's end has been counted.
void Generation::tell_ended(std::size_t index) {
  if (!ended_[index]) return;
  push(*ended_[index]);
  ended_[index].reset();
  --answers_;
}

void Generation::push(const api::ChoiceEvent& event) {
  if (!delivery_->push(event)) end_all();
}

// The client reads no more, or its answer has failed.
void Generation::end_all() {
  delivery_.reset();
  for (const StreamId stream : streams_) app_.loop.cancel(stream);
}

void Generation::on_end(std::size_t index, const EndEvent& event) {
  const std::scoped_lock lock(mutex_);
  meter_->on_end(index, event);
  const bool last = --open_ == 0;
  if (last) {
    entry_.slot = {};  // before the client can know, so that its next request finds the place free
    app_.workers.post([self = shared_from_this()] { self->write_log(); });
  }
  if (delivery_ == nullptr || event.reason == EndReason::cancelled) return;
  if (event.reason == EndReason::shutdown || event.reason == EndReason::error) {
    delivery_->fail(failure_of(event));
    return end_all();
  }
  if (search_) {
    tell_ended(index);
    if (last && answers_ > 0 && delivery_ != nullptr) delivery_->fail(too_few_answers());
  } else {
    push_end(index, event);
  }
  if (last) delivery_.reset();
}

void Generation::push_end(std::size_t index, const EndEvent& event) {
  tell_scores(index);
  api::ChoiceEvent choice;
  choice.index = static_cast<std::uint32_t>(index);
  choice.finish = finish_of(event.reason);
  if (event.stop_index >= 0) choice.stop_text = stop_[static_cast<std::size_t>(event.stop_index)];
  choice.stop_token = event.stop_token;
  choice.prompt_tokens = event.prompt_tokens;
  choice.completion_tokens = event.completion_tokens;
  push(choice);
}

// Facts about the request, no text of it.
void Generation::write_log() const {
  const RequestMeter::Totals& totals = meter_->totals();
  const std::string seed = std::to_string(seed_);
  app_.log.log(LogLevel::info, "generated",
               {{"id", entry_.id},
                {"tenant", entry_.tenant},
                {"prompts", static_cast<std::int64_t>(shape_.prompts)},
                {"n", static_cast<std::int64_t>(shape_.n)},
                {"seed", seed},
                {"seed_drawn", seed_drawn_},
                {"prompt_tokens", static_cast<std::int64_t>(totals.prompt_tokens)},
                {"completion_tokens", static_cast<std::int64_t>(totals.completion_tokens)},
                {"queue_s", totals.queue_s},
                {"first_token_s", totals.first_token_s},
                {"reason", to_string(totals.reason)}});
}

}  // namespace kvasir::server
