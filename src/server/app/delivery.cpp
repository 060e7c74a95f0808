#include "server/app/delivery.hpp"

#include <string>
#include <utility>

#include "report/json.hpp"
#include "server/api/best_of.hpp"
#include "server/app/replies.hpp"

namespace kvasir::server {
namespace {

std::size_t prompts_of(const api::ChatContext&) { return 1; }
std::size_t prompts_of(const api::CompletionContext& context) { return context.prompts.size(); }

// Chat has no best_of.
void set_left_out(api::ChatAnswer&, std::uint64_t) {}
void set_left_out(api::CompletionAnswer& answer, std::uint64_t tokens) { answer.left_out(tokens); }

// Chat has one prompt and does not stream its log probabilities.
void set_scored(api::ChatStream&, std::size_t, std::vector<api::PositionLogprobs>) {}
void set_scored(api::CompletionStream& stream, std::size_t prompt, std::vector<api::PositionLogprobs> logprobs) {
  stream.prompt_scored(prompt, std::move(logprobs));
}
void set_scored(api::ChatAnswer& answer, std::size_t, std::vector<api::PositionLogprobs> logprobs) {
  answer.prompt_scored(std::move(logprobs));
}
void set_scored(api::CompletionAnswer& answer, std::size_t prompt, std::vector<api::PositionLogprobs> logprobs) {
  answer.prompt_scored(prompt, std::move(logprobs));
}
api::Json json_of(api::ChatAnswer& answer) { return answer.json(); }
api::Json json_of(api::CompletionAnswer& answer) { return answer.take_json(); }

template <class Context, class Stream>
class StreamDelivery final : public Delivery {
 public:
  StreamDelivery(std::shared_ptr<const Context> context, ResponderPtr responder)
      : context_(std::move(context)), responder_(std::move(responder)), stream_(*context_) {}

  void begin() override {
    if (std::exchange(begun_, true)) return;
    responder_->begin_stream(200, {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}, "text/event-stream");
  }
  void scored(std::size_t prompt, std::vector<api::PositionLogprobs> logprobs) override {
    set_scored(stream_, prompt, std::move(logprobs));
  }
  bool push(const api::ChoiceEvent& event) override {
    begin();
    stream_.push(event, payloads_);
    return write();
  }
  void fail(const api::ApiError& error) override {
    if (!begun_) return reply(*responder_, error);
    stream_.fail(error, payloads_);
    write();
  }

 private:
  bool write() {
    piece_.clear();
    for (const std::string& payload : payloads_) piece_.append("data: ").append(payload).append("\n\n");
    payloads_.clear();
    if (!piece_.empty() && !responder_->write(piece_)) return false;
    return !stream_.closed() || responder_->end();
  }

  const std::shared_ptr<const Context> context_;
  const ResponderPtr responder_;
  Stream stream_;
  bool begun_ = false;
  std::vector<std::string> payloads_;
  std::string piece_;  // reused
};

// A ChoiceEvent that owns what it refers to.
struct KeptEvent {
  explicit KeptEvent(const api::ChoiceEvent& from)
      : event(from),
        text(from.text),
        top(from.top_logprobs.begin(), from.top_logprobs.end()),
        stop_text(from.stop_text),
        error(from.error) {}

  api::ChoiceEvent view() const {
    api::ChoiceEvent out = event;
    out.text = text;
    out.top_logprobs = top;
    out.stop_text = stop_text;
    out.error = error;
    return out;
  }

  api::ChoiceEvent event;
  std::string text;
  std::vector<engine::TokenLogprob> top;
  std::string stop_text, error;
};

template <class Context, class Answer>
class WholeDelivery final : public Delivery {
 public:
  WholeDelivery(std::shared_ptr<const Context> context, ResponderPtr responder, Workers& workers)
      : workers_(workers), kept_(std::make_shared<Kept>()), open_(prompts_of(*context) * context->options.samples) {
    kept_->context = std::move(context);
    kept_->responder = std::move(responder);
  }

  void begin() override {}
  void scored(std::size_t prompt, std::vector<api::PositionLogprobs> logprobs) override {
    kept_->scored.emplace_back(prompt, std::move(logprobs));
  }
  bool push(const api::ChoiceEvent& event) override {
    kept_->events.emplace_back(event);
    if (event.finish == engine::FinishReason::none) return true;
    if (--open_ == 0) workers_.post([kept = std::move(kept_)] { kept->answer(); });
    return true;
  }
  void fail(const api::ApiError& error) override { reply(*kept_->responder, error); }

 private:
  struct Kept {
    std::shared_ptr<const Context> context;
    ResponderPtr responder;
    std::vector<std::pair<std::size_t, std::vector<api::PositionLogprobs>>> scored;
    std::vector<KeptEvent> events;

    void answer() {
      Answer answer(*context);
      for (auto& [prompt, logprobs] : scored) set_scored(answer, prompt, std::move(logprobs));
      if (context->options.samples > context->options.n) keep_best(answer);
      for (const KeptEvent& event : events) answer.push(event.view());
      if (answer.failure()) return reply(*responder, *answer.failure());
      reply(*responder, json_of(answer));
    }

    // What best_of leaves out goes, the rest gets the places of its answers.
    void keep_best(Answer& answer) {
      api::BestOf best(prompts_of(*context), context->options.samples, context->options.n);
      for (const KeptEvent& kept : events) best.note(kept.event);
      best.decide();
      std::erase_if(events, [&best](const KeptEvent& kept) { return !best.answer(kept.event.index); });
      for (KeptEvent& kept : events) kept.event.index = *best.answer(kept.event.index);
      set_left_out(answer, best.left_out_tokens());
    }
  };

  Workers& workers_;
  std::shared_ptr<Kept> kept_;  // given away with the last event
  std::size_t open_;            // samples that go on, or answers of a beam search
};

template <class Stream, class Answer, class Context>
std::unique_ptr<Delivery> make(std::shared_ptr<const Context> context, ResponderPtr responder, Workers& workers) {
  if (context->options.stream) {
    return std::make_unique<StreamDelivery<Context, Stream>>(std::move(context), std::move(responder));
  }
  return std::make_unique<WholeDelivery<Context, Answer>>(std::move(context), std::move(responder), workers);
}

}  // namespace

std::unique_ptr<Delivery> make_delivery(std::shared_ptr<const api::ChatContext> context, ResponderPtr responder,
                                        Workers& workers) {
  return make<api::ChatStream, api::ChatAnswer>(std::move(context), std::move(responder), workers);
}

std::unique_ptr<Delivery> make_delivery(std::shared_ptr<const api::CompletionContext> context, ResponderPtr responder,
                                        Workers& workers) {
  return make<api::CompletionStream, api::CompletionAnswer>(std::move(context), std::move(responder), workers);
}

}  // namespace kvasir::server
