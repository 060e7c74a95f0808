// Answers of /v1/chat/completions, whole or in chunks, from the events of their tokens.
//
// Chunks of one choice: the role, immediately before its first token (a role sent before would fake the time to the
// first token); content, of options.stream_interval tokens (held_tokens.hpp); the last with finish_reason, which may
// bring content too. After all choices the usage, if asked for, in a chunk without choices; then [DONE]. A failure is an
// error event, and nothing follows it.
//
// Thread rule: one owner. Allocates per token.
// Invariants: the contents of a choice's chunks joined equal the content of the whole answer.
// REQUIRES: events of a choice in order, none after its last.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answer_parts.hpp"
#include "server/api/held_tokens.hpp"
#include "server/api/prompt.hpp"

namespace kvasir::server::api {

// What an answer is about; it outlives the builders.
struct ChatContext {
  AnswerHead head;
  RequestOptions options;
  PreparedPrompt prompt;
  const text::Tokenizer* tokenizer = nullptr;  // never null
};

class ChatAnswer {
 public:
  explicit ChatAnswer(const ChatContext& context);

  void push(const ChoiceEvent& event);
  // Log probabilities of the prompt, with options.prompt_logprobs >= 0: one entry a token.
  void prompt_scored(std::vector<PositionLogprobs> logprobs);

  bool finished() const { return open_ == 0; }
  // Set if an answer failed: the request's answer is this error.
  const std::optional<ApiError>& failure() const { return failure_; }
  // REQUIRES: finished() without failure().
  Json json() const;

 private:
  struct Choice {
    std::string content;
    Json logprobs = Json::array(), token_ids = Json::array();
    Json finish, stop;
  };

  const ChatContext* context_;
  Usage usage_;
  std::vector<Choice> choices_;  // [n]
  std::vector<PositionLogprobs> prompt_logprobs_;
  std::size_t open_;  // choices that go on
  std::optional<ApiError> failure_;
};

class ChatStream {
 public:
  explicit ChatStream(const ChatContext& context);

  // Appends the payloads that the event gives rise to: each is one `data:` line.
  void push(const ChoiceEvent& event, std::vector<std::string>& payloads);
  // A failure that is no event of a choice: the error event.
  void fail(const ApiError& error, std::vector<std::string>& payloads);

  // Nothing follows any more.
  bool closed() const { return closed_; }

 private:
  struct Choice {
    explicit Choice(const ChatContext& context) : held(context.options.stream_interval) {}
    bool begun = false, ended = false;
    HeldTokens held;
    Json logprobs = Json::array();  // of the held tokens
  };

  void chunk(const Json& choices, std::vector<std::string>& payloads);
  void begin(Choice& choice, std::uint32_t index, std::vector<std::string>& payloads);
  // What is held leaves, as far as it says anything.
  void send_held(Choice& choice, std::vector<std::string>& payloads);
  Json take_choice(Choice& choice, const ChoiceEvent& event);
  bool says_nothing(const ChoiceEvent& event) const;

  const ChatContext* context_;
  std::string head_;             // of every chunk, up to its choices
  Usage usage_;                  // of what was sent
  std::vector<Choice> choices_;  // [n]
  std::size_t open_;
  bool first_ = true, closed_ = false;
};

}  // namespace kvasir::server::api
