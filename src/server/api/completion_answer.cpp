#include "server/api/completion_answer.hpp"

#include "base/check.hpp"

namespace kvasir::server::api {
namespace {

const PreparedPrompt& prompt_of(const CompletionContext& context, const ChoiceEvent& event) {
  return context.prompts[event.index / context.options.n];
}

// The echo at the beginning of a choice: its text is returned, its log probabilities are added.
std::string begin(const CompletionContext& context, const ChoiceEvent& event,
                  const std::vector<std::vector<PositionLogprobs>>& scored, CompletionLogprobs& logprobs) {
  if (!context.echo) return {};
  const PreparedPrompt& prompt = prompt_of(context, event);
  if (context.options.logprobs >= 0)
    logprobs.add_prompt(prompt.ids, prompt.hidden, scored[event.index / context.options.n]);
  return prompt.text;
}

void add_logprobs(const CompletionContext& context, const ChoiceEvent& event, CompletionLogprobs& logprobs) {
  if (context.options.logprobs >= 0 && event.token >= 0) logprobs.add(event);
}

// Asked for by name, not because an echo needs them.
bool wants_prompt_logprobs(const CompletionContext& context) {
  return context.options.prompt_logprobs >= 0 && !(context.echo && context.options.logprobs >= 0);
}

}  // namespace

CompletionAnswer::Choice::Choice(const CompletionContext& context)
    : logprobs(*context.tokenizer, context.options.special_text) {}

CompletionStream::Choice::Choice(const CompletionContext& context)
    : held(context.options.stream_interval), logprobs(*context.tokenizer, context.options.special_text) {}

CompletionAnswer::CompletionAnswer(const CompletionContext& context)
    : context_(&context),
      usage_(context.prompts.size(), context.options.n),
      choices_(context.choices(), Choice(context)),
      prompt_logprobs_(context.prompts.size()),
      open_(context.choices()) {}

void CompletionAnswer::prompt_scored(std::size_t prompt, std::vector<PositionLogprobs> logprobs) {
  prompt_logprobs_[prompt] = std::move(logprobs);
}

void CompletionAnswer::push(const ChoiceEvent& event) {
  usage_.note(event);
  Choice& choice = choices_[event.index];
  KV_CHECK(choice.finish.is_null(), "no event after a choice's last");
  if (event.finish == engine::FinishReason::error) {
    if (!failure_) failure_ = failure_of(event);
  } else {
    if (!choice.begun) choice.text = begin(*context_, event, prompt_logprobs_, choice.logprobs);
    choice.begun = true;
    choice.text += event.text;
    add_logprobs(*context_, event, choice.logprobs);
    if (event.token >= 0 && context_->options.return_token_ids) choice.token_ids.push_back(event.token);
  }
  if (event.finish == engine::FinishReason::none) return;
  choice.finish = finish_reason(event);
  choice.stop = stop_reason(event);
  --open_;
}

Json CompletionAnswer::take_json() {
  KV_CHECK(finished() && !failure_, "an answer that is complete");
  Json choices = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    Json one = {{"index", i},
                {"text", std::move(choice.text)},
                {"logprobs", context_->options.logprobs >= 0 ? choice.logprobs.take() : Json(nullptr)},
                {"finish_reason", choice.finish},
                {"stop_reason", choice.stop}};
    const std::size_t prompt = i / context_->options.n;
    if (wants_prompt_logprobs(*context_)) {
      one["prompt_logprobs"] =
          prompt_logprobs(*context_->tokenizer, context_->prompts[prompt].ids, prompt_logprobs_[prompt]);
    }
    if (context_->options.return_token_ids) {
      one["token_ids"] = std::move(choice.token_ids);
      one["prompt_token_ids"] = context_->prompts[prompt].ids;
    }
    choices.push_back(std::move(one));
  }
  Json out = head_json(context_->head, "text_completion");
  out["choices"] = std::move(choices);
  out["usage"] = usage_.json();
  return out;
}

CompletionStream::CompletionStream(const CompletionContext& context)
    : context_(&context),
      head_(open_head(context.head, "text_completion")),
      usage_(context.prompts.size(), context.options.n),
      choices_(context.choices(), Choice(context)),
      prompt_logprobs_(context.prompts.size()),
      open_(context.choices()) {}

void CompletionStream::prompt_scored(std::size_t prompt, std::vector<PositionLogprobs> logprobs) {
  prompt_logprobs_[prompt] = std::move(logprobs);
}

void CompletionStream::chunk(Json choice, std::vector<std::string>& payloads) const {
  std::string out = head_ + "\"choices\":[" + report::to_json_line(choice) + "]";
  // Where the usage is asked for, a chunk that does not have it says so.
  if (context_->options.continuous_usage)
    out += ",\"usage\":" + usage_.json().dump();
  else if (context_->options.include_usage)
    out += ",\"usage\":null";
  payloads.push_back(out + "}");
}

Json CompletionStream::take_choice(Choice& choice, const ChoiceEvent& event) {
  Json out = {{"index", event.index},
              {"text", event.text},
              {"logprobs", choice.logprobs.empty() ? Json(nullptr) : choice.logprobs.take()},
              {"finish_reason", finish_reason(event)}};
  if (event.finish != engine::FinishReason::none) out["stop_reason"] = stop_reason(event);
  if (context_->options.return_token_ids) {
    out["token_ids"] = choice.held.tokens();
    if (!choice.begun) out["prompt_token_ids"] = prompt_of(*context_, event).ids;
  }
  return out;
}

// A token whose text waits (half a character, what may become a stop text) needs no chunk unless it brings something
// else; the first token always has one, from which clients take the time to it.
bool CompletionStream::says_nothing(const Choice& choice, const ChoiceEvent& event) const {
  return choice.begun && event.finish == engine::FinishReason::none && event.text.empty() && choice.logprobs.empty() &&
         !context_->options.return_token_ids && !context_->options.continuous_usage;
}

void CompletionStream::send_held(Choice& choice, std::vector<std::string>& payloads) {
  const ChoiceEvent event = choice.held.joined();
  usage_.note(event);
  if (says_nothing(choice, event)) return;
  chunk(take_choice(choice, event), payloads);
  choice.begun = true;
  choice.held.clear();
}

void CompletionStream::push(const ChoiceEvent& event, std::vector<std::string>& payloads) {
  if (closed_) return;  // the other choices of a stream that failed
  if (event.finish == engine::FinishReason::error) return fail(failure_of(event), payloads);
  KV_CHECK(event.index < choices_.size(), "an answer of this request");
  Choice& choice = choices_[event.index];
  KV_CHECK(!choice.ended, "no event after a choice's last");
  if (!choice.begun) choice.held.begin_with(begin(*context_, event, prompt_logprobs_, choice.logprobs));
  add_logprobs(*context_, event, choice.logprobs);
  if (!choice.held.add(event)) return;
  send_held(choice, payloads);
  if (event.finish == engine::FinishReason::none) return;
  choice.ended = true;
  if (--open_ > 0) return;
  closed_ = true;
  end_stream(context_->options.include_usage ? &usage_ : nullptr, head_, payloads);
}

void CompletionStream::fail(const ApiError& error, std::vector<std::string>& payloads) {
  if (closed_) return;
  closed_ = true;
  for (Choice& choice : choices_) {
    if (!choice.held.empty()) send_held(choice, payloads);
  }
  payloads.push_back(report::to_json_line(error.json()));
}

}  // namespace kvasir::server::api
