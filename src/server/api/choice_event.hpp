// What one token brought one answer, as the builders of answers take it (chat_answer.hpp, completion_answer.hpp).
// Thread rule: values. The views live during the call they are given to.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "engine/request.hpp"

namespace kvasir::server::api {

struct ChoiceEvent {
  std::uint32_t index = 0;  // of the answer: prompt * n + choice
  TokenId token = -1;       // -1: no token (a prompt was scored, a failure)
  std::string_view text;    // whole UTF-8 characters that became final with it; may be empty
  bool has_logprob = false;
  float logprob = 0;                                   // of `token`
  std::span<const engine::TokenLogprob> top_logprobs;  // likeliest first
  engine::FinishReason finish = engine::FinishReason::none;
  std::string_view stop_text;           // the stop text that ended it; "" = none
  TokenId stop_token = -1;              // the entry of stop_token_ids that ended it; -1 = none
  std::string_view error;               // with FinishReason::error
  std::uint32_t prompt_tokens = 0;      // of its prompt
  std::uint32_t completion_tokens = 0;  // of this answer so far
  std::uint32_t cached_tokens = 0;      // of its prompt, not computed anew
  std::uint64_t at_ns = 0;              // when the token was there, on a clock that never goes back; 0 = unknown
};

// Log probabilities at one position of a prompt, owned. The first position has none.
struct PositionLogprobs {
  bool has_logprob = false;
  float logprob = 0;
  std::vector<engine::TokenLogprob> top;
};

}  // namespace kvasir::server::api
