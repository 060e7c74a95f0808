// Which of a prompt's samples come back, with best_of: those whose tokens have the highest mean log probability, best first;
// of equals the earlier one.
//
// Thread rule: one owner.
// Source: the OpenAI API description ("the one with the highest log probability per token").
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/api/choice_event.hpp"

namespace kvasir::server::api {

class BestOf {
 public:
  // Of each prompt: so many samples, of which so many come back.
  BestOf(std::size_t prompts, std::uint32_t samples, std::uint32_t returned);

  // event.index: prompt * samples + sample. Its token has a log probability, if it has a token.
  void note(const ChoiceEvent& event);
  // All have been noted: the choice is made.
  void decide();

  // The answer that a sample became: prompt * returned + place; none if it does not come back. REQUIRES: decide().
  std::optional<std::uint32_t> answer(std::size_t sample) const { return answers_[sample]; }
  // Tokens of those that do not come back. REQUIRES: decide().
  std::uint64_t left_out_tokens() const { return left_out_; }

 private:
  struct Sample {
    double sum = 0;  // of its tokens' log probabilities
    std::uint32_t tokens = 0;
    double mean() const { return tokens == 0 ? 0 : sum / tokens; }
  };

  std::uint32_t samples_, returned_;
  std::vector<Sample> noted_;                            // [prompts * samples]
  std::vector<std::optional<std::uint32_t>> answers_;    // [prompts * samples]
  std::uint64_t left_out_ = 0;
};

}  // namespace kvasir::server::api
