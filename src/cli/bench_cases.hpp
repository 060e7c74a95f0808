// Speed of batches: prefill and decode rates as tools for other engines report them, so that they can be set side by side.
//   prefill_tok_s  prompt tokens of all sequences over the time until each has its first token
//   decode_tok_s   tokens after the last of those, over the time they took
// Prompts are random ids, no prefix shared; greedy; no end-of-text; 33 new tokens each, 129 where there is one sequence.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "platform/terminal.hpp"

namespace kvasir::cli {

struct BenchCase {
  std::uint32_t sequences = 1;
  std::uint32_t prompt = 1;        // tokens of each
  std::uint32_t new_tokens() const { return sequences == 1 ? 129 : 33; }
};

struct BenchResult {
  BenchCase shape;
  double prefill_per_s = 0;        // best of the runs
  double decode_per_s = 0;         // best of the runs
  engine::EffectiveSettings effective;
};

// "peers" (the six cases of the peers' tool) or "SxP,SxP": S sequences of P prompt tokens.
// Errors: usage naming the part that is malformed.
Result<std::vector<BenchCase>> parse_bench_cases(const std::string& text);

// Warms up, then runs the case `repeat` times. Of `config`, sequence count, context and (if 0) cache memory become what
// the case needs. Errors: the engine's; cancelled after a signal.
Result<BenchResult> run_bench_case(const std::shared_ptr<const model::Model>& model, const BenchCase& shape, std::uint32_t repeat,
                                   const engine::PoolConfig& config, const platform::InterruptScope& interrupt);

// `count` ids of a fixed pseudo-random sequence, in [300, 40000) or what of it the vocabulary has.
std::vector<TokenId> random_prompt(std::uint64_t seed, std::uint32_t count, std::uint32_t vocabulary);

}  // namespace kvasir::cli
