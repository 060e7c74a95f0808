// One request, from submit to its last token, with text handed out as it comes.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "platform/terminal.hpp"

namespace kvasir::cli {

struct AnswerLogprob {
  engine::TokenLogprob token;
  std::vector<engine::TokenLogprob> top;   // likeliest first
};

struct Answer {
  std::string text;
  std::vector<TokenId> token_ids;           // an end-of-text token included
  std::vector<AnswerLogprob> logprobs;      // empty unless asked for
  std::string finish_reason;                // "stop", "length", or "cancelled" after a signal
  std::uint32_t prompt_tokens = 0;
  double ttft_s = 0;                        // submit to first token; 0 if none came
  double decode_s = 0;                      // first token to last
  double total_s = 0;
  std::uint64_t kv_bytes = 0;               // most cache bytes that were active

  // Tokens after the first, per second; 0 with fewer than two.
  double decode_per_s() const;
  double prefill_per_s() const;
};

// Runs until the request finishes, or until `interrupt` has a signal: then the request is cancelled and what came so far
// is the answer. REQUIRES: the engine has no other work. Errors: Engine::submit's; exhausted if the engine gave it up.
Result<Answer> generate(engine::Engine& engine, engine::GenerateRequest request,
                        const std::function<void(std::string_view text)>& on_text, const platform::InterruptScope& interrupt);

// "42 tokens, first after 85.2 ms, 98.1 tok/s, 1.20 MiB of KV"
std::string summary_line(const Answer& answer);

}  // namespace kvasir::cli
