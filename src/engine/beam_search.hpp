// Which beams go on, which are finished, and when the search ends: the arithmetic of a beam search, step by step.
// Source: `_beam_search` of Hugging Face transformers 5 (greedy choice, no sampling), whose words and edge cases these are.
//
//   score of a beam    = sum of its tokens' log probabilities (floats, added in order)
//   candidates         = of all beams' continuations the (1 + ends) * width best, 2 * width at least; of equals the earlier
//                        beam, then the lower id
//   finished           = a candidate among the first `width` that ends (an end token, or max_new_tokens): it is kept with
//                        score / (its tokens)^length_penalty if it is among the `width` best finished ones
//   running            = the first `width` candidates that do not end
//   the search is over = no candidate goes on; or early stopping is on and `width` are finished; or the best running score,
//                        over its own length (over max_new_tokens with `never` and a penalty > 0), no longer exceeds the
//                        worst of `width` finished ones
//
// Thread rule: one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "core/core.hpp"
#include "engine/ranked_candidates.hpp"
#include "engine/request.hpp"
#include "platform/isa.hpp"

namespace kvasir::engine {

struct Hypothesis {
  std::vector<TokenId> tokens;    // the end token included
  std::vector<float> logprobs;    // of each
  float score = 0;                // with the length penalty
  bool ended = false;             // by an end token; else by max_new_tokens
};

class BeamSearch {
 public:
  // ends: tokens that end a beam. max_new_tokens: at least 1.
  BeamSearch(const BeamParams& params, std::uint32_t max_new_tokens, std::span<const TokenId> ends, std::uint32_t vocabulary,
             platform::Isa isa);

  // The logits that follow beam `beam`'s last token: for beam 0 alone before the first advance(), then for every beam, in order.
  void offer(std::uint32_t beam, std::span<const float> logits);
  // All have been offered: the step is decided.
  void advance();

  bool over() const { return over_; }
  // How each beam goes on. REQUIRES: an advance(), not over().
  std::span<const core::BeamStep> next() const { return next_; }
  // The best finished ones, best first, as many as asked for (as there are, in a vocabulary smaller than the search). REQUIRES:
  // over().
  std::span<const Hypothesis> best() const {
    return std::span(finished_).first(std::min<std::size_t>(params_.returned, finished_.size()));
  }
  std::uint32_t width() const { return params_.width; }

 private:
  struct Beam {
    std::vector<TokenId> tokens;
    std::vector<float> logprobs;
    float score = 0;
  };
  struct Option {
    std::uint32_t beam = 0;
    TokenId token = 0;
    float logprob = 0, score = 0;
    bool ends = false;
  };

  void finish(const Option& option);
  float penalised(float score, std::size_t tokens) const;
  bool is_over() const;

  BeamParams params_;
  std::uint32_t max_new_tokens_, kept_;
  std::vector<TokenId> ends_;
  platform::Isa isa_;
  RankedCandidates ranked_;
  std::vector<float> block_max_;
  std::vector<Beam> beams_;
  std::vector<Option> options_;       // offered in this step
  std::vector<Hypothesis> finished_;  // best first
  std::vector<core::BeamStep> next_;
  bool over_ = false;
};

}  // namespace kvasir::engine
