// Everything a request asks of its logits before temperature and cuts: what may be sampled at all, biases, penalties.
// The order is SamplingParams'.
//
// Thread rule: one owner; apply() is const, so rows of one step may run on any threads. Allocates at construction only.
// Invariant: what apply() makes depends on the raw logits, the parameters and the request's own tokens alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "engine/penalties.hpp"
#include "engine/sampling_params.hpp"

namespace kvasir::engine {

class LogitRules {
 public:
  // ends: end-of-text tokens; like the stop tokens they are not sampled before min_tokens, ignored or not.
  // most_outputs: tokens that the answer may have. REQUIRES: valid parameters, token ids within the vocabulary.
  LogitRules(const SamplingParams& params, std::span<const TokenId> prompt, std::span<const TokenId> ends,
             std::uint32_t most_outputs);

  // Whether a request needs rules at all.
  static bool needed_by(const SamplingParams& params);

  // raw, out: [vocabulary], not overlapping. Tokens that may not be sampled become -infinity.
  void apply(std::span<const float> raw, std::span<float> out) const;
  // The same with allowed_token_ids, biases and penalties alone: for a row of which apply() leaves nothing.
  void apply_without_bans(std::span<const float> raw, std::span<float> out) const;
  // What is chosen where not even that leaves a number: the lowest id that is allowed.
  TokenId lowest_allowed() const { return allowed_.empty() ? 0 : allowed_.front(); }

  // The answer got this token.
  void push(TokenId token);

 private:
  void allow(std::span<const float> raw, std::span<float> out) const;
  void ban(std::span<float> out) const;
  void shift(std::span<float> out) const;

  std::vector<TokenId> allowed_;  // ascending, each once; empty = all
  std::vector<std::vector<TokenId>> bad_words_;
  std::vector<TokenId> recent_;  // the answer's last tokens, as many as a bad word's start can have
  std::size_t longest_start_ = 0;
  std::vector<TokenId> ends_;  // not sampled while the answer is shorter than min_tokens_
  std::uint32_t min_tokens_, outputs_ = 0;
  std::vector<LogitBias> biases_;
  Penalties penalties_;
};

}  // namespace kvasir::engine
