#include "server/api/chat_answer.hpp"

#include <utility>

#include "base/check.hpp"
#include "server/api/logprobs.hpp"

namespace kvasir::server::api {
namespace {

bool wants_logprobs(const ChatContext& context) { return context.options.logprobs >= 0; }

}  // namespace

ChatAnswer::ChatAnswer(const ChatContext& context)
    : context_(&context), usage_(1, context.options.n), choices_(context.options.n), open_(context.options.n) {}

void ChatAnswer::push(const ChoiceEvent& event) {
  usage_.note(event);
  Choice& choice = choices_[event.index];
  KV_CHECK(choice.finish.is_null(), "no event after a choice's last");
  choice.content += event.text;
  if (event.token >= 0 && wants_logprobs(*context_) && event.has_logprob) {
    choice.logprobs.push_back(chat_logprob(*context_->tokenizer, event));
  }
  if (event.token >= 0 && context_->options.return_token_ids) choice.token_ids.push_back(event.token);
  if (event.finish == engine::FinishReason::none) return;
  if (event.finish == engine::FinishReason::error && !failure_) failure_ = failure_of(event);
  choice.finish = finish_reason(event);
  choice.stop = stop_reason(event);
  --open_;
}

void ChatAnswer::prompt_scored(std::vector<PositionLogprobs> logprobs) { prompt_logprobs_ = std::move(logprobs); }

Json ChatAnswer::json() const {
  KV_CHECK(finished() && !failure_, "an answer that is complete");
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    Json one = {{"index", i},
                {"message", {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}}},
                {"logprobs", wants_logprobs(*context_) ? Json({{"content", choice.logprobs}, {"refusal", nullptr}})
                                                       : Json(nullptr)},
                {"finish_reason", choice.finish},
                {"stop_reason", choice.stop}};
    if (context_->options.return_token_ids) one["token_ids"] = choice.token_ids;
    choices.push_back(std::move(one));
  }
  Json out = head_json(context_->head, "chat.completion");
  out["choices"] = std::move(choices);
  out["usage"] = usage_.json();
  if (context_->options.prompt_logprobs >= 0) {
    out["prompt_logprobs"] = prompt_logprobs(*context_->tokenizer, context_->prompt.ids, prompt_logprobs_);
  }
  if (context_->options.return_token_ids) out["prompt_token_ids"] = context_->prompt.ids;
  return out;
}

ChatStream::ChatStream(const ChatContext& context)
    : context_(&context),
      head_(open_head(context.head, "chat.completion.chunk")),
      usage_(1, context.options.n),
      choices_(context.options.n, Choice(context)),
      open_(context.options.n) {}

void ChatStream::chunk(const Json& choices, std::vector<std::string>& payloads) {
  std::string out = head_ + "\"choices\":" + report::to_json_line(choices);
  if (first_ && context_->options.return_token_ids) out += ",\"prompt_token_ids\":" + Json(context_->prompt.ids).dump();
  // Where the usage is asked for, a chunk that does not have it says so.
  if (context_->options.continuous_usage)
    out += ",\"usage\":" + usage_.json().dump();
  else if (context_->options.include_usage)
    out += ",\"usage\":null";
  first_ = false;
  payloads.push_back(out + "}");
}

Json ChatStream::take_choice(Choice& choice, const ChoiceEvent& event) {
  const bool ends = event.finish != engine::FinishReason::none;
  Json delta = Json::object();
  if (!event.text.empty() || !ends) delta["content"] = event.text;
  Json logprobs;
  if (!choice.logprobs.empty()) {
    logprobs = {{"content", std::exchange(choice.logprobs, Json::array())}, {"refusal", nullptr}};
  }
  Json out = {{"index", event.index},
              {"delta", std::move(delta)},
              {"logprobs", std::move(logprobs)},
              {"finish_reason", finish_reason(event)}};
  if (ends) out["stop_reason"] = stop_reason(event);
  if (context_->options.return_token_ids) out["token_ids"] = choice.held.tokens();
  return out;
}

// A token whose text waits (half a character, what may become a stop text) needs no chunk unless it brings something
// else.
bool ChatStream::says_nothing(const ChoiceEvent& event) const {
  const RequestOptions& options = context_->options;
  return event.text.empty() && event.finish == engine::FinishReason::none && options.logprobs < 0 &&
         !options.return_token_ids && !options.continuous_usage;
}

void ChatStream::begin(Choice& choice, std::uint32_t index, std::vector<std::string>& payloads) {
  choice.begun = true;
  const Json role = {{"index", index},
                     {"delta", {{"role", "assistant"}, {"content", ""}}},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}};
  chunk(Json::array({role}), payloads);
}

void ChatStream::send_held(Choice& choice, std::vector<std::string>& payloads) {
  const ChoiceEvent event = choice.held.joined();
  usage_.note(event);
  if (!choice.begun) begin(choice, event.index, payloads);
  if (says_nothing(event)) return;
  chunk(Json::array({take_choice(choice, event)}), payloads);
  choice.held.clear();
}

void ChatStream::push(const ChoiceEvent& event, std::vector<std::string>& payloads) {
  if (closed_) return;  // the other choices of a stream that failed
  if (event.finish == engine::FinishReason::error) return fail(failure_of(event), payloads);
  KV_CHECK(event.index < choices_.size(), "an answer of this request");
  Choice& choice = choices_[event.index];
  KV_CHECK(!choice.ended, "no event after a choice's last");
  if (wants_logprobs(*context_) && event.token >= 0 && event.has_logprob) {
    choice.logprobs.push_back(chat_logprob(*context_->tokenizer, event));
  }
  if (!choice.held.add(event)) return;
  send_held(choice, payloads);
  if (event.finish == engine::FinishReason::none) return;
  choice.ended = true;
  if (--open_ > 0) return;
  closed_ = true;
  end_stream(context_->options.include_usage ? &usage_ : nullptr, head_, payloads);
}

void ChatStream::fail(const ApiError& error, std::vector<std::string>& payloads) {
  if (closed_) return;
  closed_ = true;
  for (Choice& choice : choices_) {
    if (!choice.held.empty()) send_held(choice, payloads);
  }
  payloads.push_back(report::to_json_line(error.json()));
}

}  // namespace kvasir::server::api
