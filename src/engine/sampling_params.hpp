// What decides which token follows: the knobs of one request.
// Thread rule: values; any thread.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace kvasir::engine {

inline constexpr std::int32_t kMaxTopLogprobs = 20;   // alternatives a token may report
inline constexpr float kMaxTemperature = 100.0f;

// Applied in this order: temperature -> top_k -> top_p -> min_p -> draw. The temperature comes first as in vLLM and the
// OpenAI API (llama.cpp applies it last), so the cuts see the distribution that is drawn from. top_p's share is of the
// candidates that top_k left, renormalized, as in both. At least one candidate always stays.
struct SamplingParams {
  float temperature = 0.0f;       // 0 = greedy: the highest logit, of equals the lowest id; the cuts below are not used
  std::uint32_t top_k = 0;        // keep the k likeliest; 0 = all
  float top_p = 1.0f;             // keep the likeliest whose probabilities first reach top_p; 1 = all
  float min_p = 0.0f;             // keep those at least min_p times as likely as the likeliest; 0 = all
  std::uint64_t seed = 0;         // the randomness of a draw is a function of (seed, choice, position) alone
  std::uint32_t choice = 0;       // which of several answers to one prompt this is
  std::int32_t logprobs = -1;     // -1 none; n >= 0: the token's own logprob and those of the n likeliest, from raw logits

  bool greedy() const { return temperature == 0.0f; }
};

// Errors: bad_input naming key, value and range. NaN is out of every range.
Status validate(const SamplingParams& params);

}  // namespace kvasir::engine
