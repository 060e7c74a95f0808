// Answers of /v1/completions, whole or in chunks, from the events of their tokens. One choice for each prompt and each
// of its n answers, indexed in order: prompt * n + answer.
//
// With echo a choice begins with its prompt: in its text, and, with logprobs, in its log probabilities. Chunks carry
// the text and the log probabilities of options.stream_interval tokens (held_tokens.hpp); the last of a choice has
// finish_reason; then the usage, if asked for, in a chunk without choices; then [DONE]. A failure is an error event,
// and nothing follows it.
//
// Thread rule: one owner. Allocates per token.
// Invariants: the texts of a choice's chunks joined equal the text of the whole answer; so do its lists of log
// probabilities.
// REQUIRES: prompt_scored() before a prompt's first event, where its log probabilities were asked for
// (options.prompt_logprobs >= 0); events of a choice in order, none after its last.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answer_parts.hpp"
#include "server/api/held_tokens.hpp"
#include "server/api/logprobs.hpp"
#include "server/api/prompt.hpp"

namespace kvasir::server::api {

// What an answer is about; it outlives the builders.
struct CompletionContext {
  AnswerHead head;
  RequestOptions options;
  bool echo = false;
  std::vector<PreparedPrompt> prompts;
  const text::Tokenizer* tokenizer = nullptr;  // never null

  std::size_t choices() const { return prompts.size() * options.n; }
};

class CompletionAnswer {
 public:
  explicit CompletionAnswer(const CompletionContext& context);

  // One entry a token of the prompt.
  void prompt_scored(std::size_t prompt, std::vector<PositionLogprobs> logprobs);
  void push(const ChoiceEvent& event);
  // Tokens that were generated for answers that best_of left out: they count in the usage.
  void left_out(std::uint64_t tokens) { usage_.add_left_out(tokens); }

  bool finished() const { return open_ == 0; }
  // Set if an answer failed: the request's answer is this error.
  const std::optional<ApiError>& failure() const { return failure_; }
  // REQUIRES: finished() without failure(). Takes what was collected.
  Json take_json();

 private:
  struct Choice {
    explicit Choice(const CompletionContext& context);
    bool begun = false;
    std::string text;
    CompletionLogprobs logprobs;
    Json token_ids = Json::array();
    Json finish, stop;
  };

  const CompletionContext* context_;
  Usage usage_;
  std::vector<Choice> choices_;                                 // [prompts * n]
  std::vector<std::vector<PositionLogprobs>> prompt_logprobs_;  // [prompts]
  std::size_t open_;                                            // choices that go on
  std::optional<ApiError> failure_;
};

class CompletionStream {
 public:
  explicit CompletionStream(const CompletionContext& context);

  void prompt_scored(std::size_t prompt, std::vector<PositionLogprobs> logprobs);
  // Appends the payloads that the event gives rise to: each is one `data:` line.
  void push(const ChoiceEvent& event, std::vector<std::string>& payloads);
  // A failure that is no event of a choice: the error event.
  void fail(const ApiError& error, std::vector<std::string>& payloads);

  // Nothing follows any more.
  bool closed() const { return closed_; }

 private:
  struct Choice {
    explicit Choice(const CompletionContext& context);
    bool begun = false, ended = false;
    HeldTokens held;
    CompletionLogprobs logprobs;  // of the held tokens
  };

  void chunk(Json choice, std::vector<std::string>& payloads) const;
  // What is held leaves, as far as it says anything.
  void send_held(Choice& choice, std::vector<std::string>& payloads);
  Json take_choice(Choice& choice, const ChoiceEvent& event);
  bool says_nothing(const Choice& choice, const ChoiceEvent& event) const;

  const CompletionContext* context_;
  std::string head_;  // of every chunk, up to its choices
  Usage usage_;       // of what was sent
  std::vector<Choice> choices_;
  std::vector<std::vector<PositionLogprobs>> prompt_logprobs_;
  std::size_t open_;
  bool closed_ = false;
};

}  // namespace kvasir::server::api
