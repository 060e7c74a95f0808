// Perplexity of a text, counted as llama.cpp counts it: the text is tokenized once, cut in non-overlapping windows of
// `context` tokens (a last partial one is dropped), the first token of each window is replaced by the beginning-of-text
// token where the vocabulary adds one, and the predictions of the tokens in the second half of each window are scored:
// tokens context/2 + 1 ... context - 1, so context - context/2 - 1 a window.
//
// Thread rule: one call at a time an object; calls are independent of each other.
// Errors: bad_input (window too small or larger than the model's context, text shorter than two windows: both numbers);
// whatever Engine::create and submit give.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace kvasir::quality {

struct PerplexityProgress {
  std::uint64_t windows_done = 0, windows = 0;
  double perplexity = 0;   // so far
};

struct PerplexityOptions {
  std::uint32_t context = 512;     // tokens of a window
  std::uint64_t max_windows = 0;   // 0 = all
  std::function<void(const PerplexityProgress&)> progress = {};   // after each window; may be empty
  std::function<bool()> stop = {};   // asked between steps; true ends with ErrorCode::cancelled; may be empty
};

struct PerplexityResult {
  double perplexity = 0;        // e^nll
  double nll = 0;               // mean negative log likelihood of a scored token, nats
  double nll_stderr = 0;        // standard error of that mean over scored tokens
  std::uint64_t tokens = 0;     // scored
  std::uint64_t windows = 0;
  engine::EffectiveSettings effective;
};

// `config` gives threads, block size, KV format and step size; its context, sequence and memory fields are replaced by
// what one window needs.
Result<PerplexityResult> perplexity(std::shared_ptr<const model::Model> model,
                                    std::shared_ptr<const text::Tokenizer> tokenizer, std::string_view text,
                                    const PerplexityOptions& options, const engine::PoolConfig& config);

}  // namespace kvasir::quality
