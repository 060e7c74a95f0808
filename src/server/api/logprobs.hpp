// Log probabilities in the three forms that clients read: chat, completions, and vLLM's prompt_logprobs.
//
// A token whose bytes are no whole characters is named "bytes:\xe2\x80", as OpenAI does, so that two such tokens stay
// apart where names are keys. Log probabilities below kLogprobFloor, minus infinity too, are given as that: JSON has no
// infinity.
//
// Thread rule: values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/api/api_error.hpp"
#include "server/api/choice_event.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::server::api {

inline constexpr double kLogprobFloor = -9999;

// An id beyond the vocabulary (a model's rows may be padded) is "".
std::string_view token_bytes(const text::Tokenizer& tokenizer, TokenId id);
std::string token_name(const text::Tokenizer& tokenizer, TokenId id);
double logprob_value(float logprob);

// Counts the characters of a text that comes in pieces of bytes: those that are complete.
class CharacterCount {
 public:
  void push(std::string_view bytes);
  std::uint64_t complete() const { return complete_; }

 private:
  std::string open_;  // the beginning of a character
  std::uint64_t complete_ = 0;
};

// One entry of a chat answer's logprobs.content: {token, logprob, bytes, top_logprobs}.
Json chat_logprob(const text::Tokenizer& tokenizer, const ChoiceEvent& event);

// The logprobs object of one answer of /v1/completions: {text_offset, token_logprobs, tokens, top_logprobs}, the lists
// parallel. Offsets count characters of the answer's text, echo included, to where the token begins.
class CompletionLogprobs {
 public:
  // special_text: control tokens have text.
  CompletionLogprobs(const text::Tokenizer& tokenizer, bool special_text);

  // Tokens of an echoed prompt, which always show as text, but for the first `hidden`. logprobs: one a token.
  void add_prompt(std::span<const TokenId> ids, std::uint32_t hidden, std::span<const PositionLogprobs> logprobs);
  void add(const ChoiceEvent& event);

  bool empty() const { return tokens_.empty(); }
  // What was added since the last call.
  Json take();

 private:
  void add_entry(TokenId token, bool shown, bool has, float logprob, std::span<const engine::TokenLogprob> top);

  const text::Tokenizer* tokenizer_;
  bool special_text_;
  CharacterCount characters_;
  Json offsets_ = Json::array(), logprobs_ = Json::array(), tokens_ = Json::array(), tops_ = Json::array();
};

// [null, {"42": {"logprob", "rank", "decoded_token"}, ...}, ...]: the prompt's token and the likeliest at each
// position. rank: 1 is the likeliest; null where it is not among those reported.
Json prompt_logprobs(const text::Tokenizer& tokenizer, std::span<const TokenId> ids,
                     std::span<const PositionLogprobs> logprobs);

}  // namespace kvasir::server::api
