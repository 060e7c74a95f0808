// One request as the engine takes it, and what it gives back for each token.
// Thread rule: values; any thread. The views in a TokenOutput live until the engine's next step().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "engine/sampling_params.hpp"
#include "sched/queue_policy.hpp"

namespace kvasir::engine {

inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopBytes = 1024;   // of one stop string
inline constexpr std::int32_t kMaxPriority = sched::kMaxPriority;   // and -kMaxPriority the least

enum class EarlyStopping : std::uint8_t { off, on, never };   // off: when better ones are unlikely; never: impossible

inline constexpr std::uint32_t kMaxBeams = 64;
inline constexpr float kMaxLengthPenalty = 10;   // either sign

// Beam search (engine/beam_search.hpp): the answers are the best sequences that it finds, not samples.
struct BeamParams {
  std::uint32_t width = 0;        // beams; 0: no beam search
  std::uint32_t returned = 1;     // answers, the best first; 1 to width
  float length_penalty = 1;       // scores are divided by (tokens)^this: above 0 for longer answers, below for shorter
  EarlyStopping early_stopping = EarlyStopping::off;
};

struct GenerateRequest {
  std::vector<TokenId> prompt;                 // at least one token; special tokens are in it already
  std::optional<std::uint32_t> max_tokens;     // output limit; none = PoolConfig::default_max_tokens
  std::int32_t priority = 0;                   // lower goes first, under PoolConfig::policy = priority
  // Requests of one number with the same prompt compute it once and share its blocks (n answers to one question), but for
  // those that want their prompt's logits. 0: none.
  std::uint64_t family = 0;
  // With it nothing is drawn: of `sampling` logprobs alone counts (0 or -1). All of the answers come with the last step.
  BeamParams beam = {};
  SamplingParams sampling;
  std::vector<std::string> stop;               // the answer ends before the first of these; needs a tokenizer
  bool include_stop = false;                   // the answer keeps the stop string that ended it
  bool ignore_eos = false;                     // end-of-text tokens are ordinary tokens
  bool special_text = false;                   // special tokens show as text in the answer
  // Logits of every prompt position go to the observer, not the last one's alone. With it max_tokens may be 0: the
  // request is done when its prompt is.
  bool prompt_logits = false;
  std::uint32_t prompt_logits_from = 0;        // the first prompt position whose logits are wanted, with prompt_logits
  // n >= 0: every prompt token but the first comes out too, with its logprob and the n likeliest of its place
  // (TokenOutput::prompt), in order and before the answer. With it max_tokens may be 0. -1: none.
  std::int32_t prompt_logprobs = -1;
};

// Checks what needs no engine. Errors: bad_input naming key, value and range.
Status validate(const GenerateRequest& request);

enum class FinishReason : std::uint8_t {
  none,     // goes on
  stop,     // an end-of-text token, a stop token or a stop string
  length,   // max_tokens or the context is used up
  error,    // can no longer be served: blocks were taken out of use since it was queued; TokenOutput::error says why
};
// Names as in the OpenAI API, and "error"; none is "".
std::string_view to_string(FinishReason reason);

struct TokenLogprob {
  TokenId token = -1;
  float logprob = 0;   // natural logarithm of the probability under the raw logits
};

// What one step brought one request. A request gets one for each token, the last with a finish reason; with
// prompt_logprobs one for each prompt token but the first, before them.
struct TokenOutput {
  RequestId request;
  std::uint32_t choice = 0;                      // which of the answers of a beam search
  TokenId token = -1;                            // -1: no token (a scored prompt is done)
  bool prompt = false;                           // a token of the prompt: no text, logprobs and rank alone
  std::uint32_t position = 0;                    // the token's position in its sequence, prompt included
  std::string_view text;                         // complete UTF-8 that became final with this token; may be empty
  bool has_logprob = false;
  float logprob = 0;                             // of `token`; needs sampling.logprobs >= 0
  std::uint32_t rank = 0;                        // of a prompt token: its place among all, 1 = likeliest; else 0
  std::span<const TokenLogprob> top_logprobs;    // likeliest first, of equals the lowest id
  FinishReason finish = FinishReason::none;
  std::int32_t stop_index = -1;                  // which stop string ended it; -1: none of them
  TokenId stop_token = -1;                       // which of stop_token_ids ended it; -1: none of them
  std::string_view error;                        // with FinishReason::error
  std::uint32_t prompt_tokens = 0;               // so far
  std::uint32_t completion_tokens = 0;           // so far, this one and an end-of-text token included
};

}  // namespace kvasir::engine
