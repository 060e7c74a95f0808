// What one request's past does to the logits of its next token: presence, frequency and repetition penalties.
//
// Keeps each token of the past once, with how often the answer has it, so a step costs the number of different tokens
// and not the length of the history.
//
// Thread rule: one owner. Allocates at construction only.
// Source: vLLM's order and signs. repetition: CTRL (Keskar et al., 2019); frequency and presence: the OpenAI API.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "engine/sampling_params.hpp"

namespace kvasir::engine {

class Penalties {
 public:
  // most_outputs: tokens that the answer may have. Without a penalty that counts it keeps nothing.
  Penalties(const SamplingParams& params, std::span<const TokenId> prompt, std::uint32_t most_outputs);

  // The answer got this token. REQUIRES: at most most_outputs times.
  void push(TokenId token);

  // In place, each token of the past once: repetition, then frequency, then presence. -infinity stays what it is.
  // logits: [vocabulary]. REQUIRES: every token of the past lies within.
  void apply(std::span<float> logits) const;

 private:
  struct Past {
    TokenId token = 0;
    std::uint32_t outputs = 0;  // times in the answer; 0: in the prompt alone
  };
  Past& find_or_add(TokenId token);

  float presence_, frequency_, repetition_;
  bool counts_;
  std::vector<Past> past_;            // in order of first sight
  std::vector<std::uint32_t> slots_;  // open addressing, a power of two: place in past_ + 1, 0 = free
};

}  // namespace kvasir::engine
