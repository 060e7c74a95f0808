// Passes over one row of logits. Thread rule: pure functions; any thread. No allocation.
//
// Bits: the same on every machine and class. Maxima are comparisons; exponentials are exp_f32 (base/fixed_math.hpp);
// sums run through one fixed tree: 16 lanes over blocks of 256 values, lanes folded pairwise, blocks added in order as
// doubles. A lane's float chain is 16 long, so a sum of weights is within about 1e-6 of exact.
// NaN is below every number: it is never a maximum and its weight is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "platform/isa.hpp"

namespace kvasir::engine {

inline constexpr std::size_t kRowBlock = 256;   // logits of one block of the passes

constexpr std::size_t row_blocks(std::size_t size) { return (size + kRowBlock - 1) / kRowBlock; }

struct RowMax {
  float value = 0;
  TokenId token = 0;   // the lowest id that has it; 0 if every logit is NaN or -infinity
};

// The highest logit, and the maximum of each block for passes that skip blocks.
// logits: [1 or more]; block_max: [row_blocks(logits.size())], written.
RowMax row_max(std::span<const float> logits, std::span<float> block_max);

// Sum of exp((logit - max) * scale) over the row. Fast where `isa` has fused multiply-add; the same bits everywhere.
double sum_exp(std::span<const float> logits, float max, float scale, platform::Isa isa);

// Place of a token in (logit descending, id ascending) order, 1 = first. A NaN comes behind every number.
std::uint32_t rank_of(std::span<const float> logits, TokenId token);

// Natural logarithm of the probability of `token` under the logits: logit - max - log(sum). sum = sum_exp(logits, max, 1).
double log_probability(float logit, float max, double sum);

}  // namespace kvasir::engine
