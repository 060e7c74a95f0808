// What decides which token follows: the knobs of one request.
// Thread rule: values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace kvasir::engine {

inline constexpr std::int32_t kMaxTopLogprobs = 20;  // alternatives a token may report
inline constexpr float kMaxTemperature = 100.0f;
inline constexpr float kMaxPenalty = 2.0f;  // of presence and frequency, either sign
inline constexpr float kMinRepetitionPenalty = 0.01f, kMaxRepetitionPenalty = 100.0f;
inline constexpr float kMaxLogitBias = 100.0f;  // either sign
// Each entry costs work in every step, so lists from outside have an end.
inline constexpr std::size_t kMaxLogitBiases = 1024;
inline constexpr std::size_t kMaxStopTokens = 128;
inline constexpr std::size_t kMaxBadWords = 1024;
inline constexpr std::size_t kMaxBadWordTokens = 64;  // of one bad word

struct LogitBias {
  TokenId token = 0;
  float bias = 0;
  bool operator==(const LogitBias&) const = default;
};

// Applied in this order, which is vLLM's:
//   allowed_token_ids -> bad_words -> min_tokens -> logit_bias -> repetition, frequency, presence penalty
//   -> temperature -> top_k -> top_p -> min_p -> draw.
// The first line also decides what greedy sampling chooses; logprobs are of the raw logits, before all of it. The
// temperature comes before the cuts as in vLLM and the OpenAI API (llama.cpp applies it last), so the cuts see the
// distribution that is drawn from. top_p's share is of the candidates that top_k left, renormalized, as in both. At
// least one candidate always stays: where allowed_token_ids, bad_words and min_tokens together would leave none, the
// latter two are not applied to that token.
struct SamplingParams {
  float temperature = 0.0f;    // 0 = greedy: the highest logit, of equals the lowest id; the cuts below are not used
  std::uint32_t top_k = 0;     // keep the k likeliest; 0 = all
  float top_p = 1.0f;          // keep the likeliest whose probabilities first reach top_p; 1 = all
  float min_p = 0.0f;          // keep those at least min_p times as likely as the likeliest; 0 = all
  std::uint64_t seed = 0;      // the randomness of a draw is a function of (seed, choice, position) alone
  std::uint32_t choice = 0;    // which of several answers to one prompt this is
  std::int32_t logprobs = -1;  // -1 none; n >= 0: the token's own logprob and those of the n likeliest, from raw logits

  float presence_penalty = 0;    // taken off the logit of every token the answer has already
  float frequency_penalty = 0;   // taken off once for each time the answer has it
  float repetition_penalty = 1;  // logits of tokens in prompt or answer: above 0 divided by it, others multiplied
  std::vector<LogitBias> logit_bias = {};       // added; a token at most once
  std::vector<TokenId> allowed_token_ids = {};  // nothing else is sampled; empty = all
  std::uint32_t min_tokens = 0;                 // so many tokens before an end-of-text token, stop token or stop string
  std::vector<TokenId> stop_token_ids = {};     // each ends the answer, even where end-of-text tokens are ignored
  std::vector<std::vector<TokenId>> bad_words = {};  // token sequences that the answer never completes

  bool greedy() const { return temperature == 0.0f; }
  bool penalizes() const { return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1; }
};

// Errors: bad_input naming key, value and range. NaN is out of every range.
Status validate(const SamplingParams& params);
// Every token id is one of a vocabulary of so many. Errors: bad_input naming key and id.
Status validate_tokens(const SamplingParams& params, std::uint32_t vocabulary);

}  // namespace kvasir::engine
