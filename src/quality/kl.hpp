// How far one model's next-token distribution is from another's, from their logits.
//
// Pure functions, any thread. All arithmetic in double, natural logarithms: results are in nats.
// A row is the logits of one position, one float a vocabulary entry, unnormalised.
// Special values: -infinity is a token of probability zero; a NaN or +infinity anywhere makes the result NaN, and so
// does a row that is -infinity throughout.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.hpp"

namespace kvasir::quality {

// log of the sum of e^logit. REQUIRES: row not empty.
double log_sum_exp(std::span<const float> row);

// Log-probability of `token`. REQUIRES: token within the row.
double log_probability(std::span<const float> row, TokenId token);

// KL(reference || other) = sum of p * (log p - log q), at least zero; +infinity if `other` gives probability zero to a
// token that `reference` may yield. REQUIRES: rows of one size, not empty.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

// The token of the largest logit, the lowest id among equals (the order sampling walks in). NaNs are passed over.
// REQUIRES: row not empty.
TokenId top_token(std::span<const float> row);

// Running totals over the positions of a text.
struct Divergence {
  std::uint64_t positions = 0;
  std::uint64_t same_top = 0;  // positions where both have the same top token
  double kl_sum = 0;

  // Counts one position and returns its KL(reference || other).
  double add(std::span<const float> reference, std::span<const float> other);

  // REQUIRES: positions > 0.
  double mean_kl() const;
  double top_agreement() const;  // 0 to 1
};

}  // namespace kvasir::quality
