#include "quality/kl.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.hpp"

namespace kvasir::quality {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest logit; NaN if the row has no distribution (a NaN, +infinity, or nothing but -infinity).
float top_of(std::span<const float> row) {
  KV_CHECK(!row.empty(), "a row of logits has at least one entry");
  float top = -kInfinity;
  for (const float logit : row) {
    if (!(logit < kInfinity)) return std::numeric_limits<float>::quiet_NaN();
    top = std::max(top, logit);
  }
  return top == -kInfinity ? std::numeric_limits<float>::quiet_NaN() : top;
}

}  // namespace

double log_sum_exp(std::span<const float> row) {
  const double top = static_cast<double>(top_of(row));
  if (std::isnan(top)) return top;
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit) - top);
  return top + std::log(sum);
}

double log_probability(std::span<const float> row, TokenId token) {
  KV_CHECK(token >= 0 && static_cast<std::size_t>(token) < row.size(), "the token is an entry of the row");
  return static_cast<double>(row[static_cast<std::size_t>(token)]) - log_sum_exp(row);
}

double kl_divergence(std::span<const float> reference, std::span<const float> other) {
  KV_CHECK(reference.size() == other.size(), "both rows are over one vocabulary");
  const double reference_norm = log_sum_exp(reference);
  const double other_norm = log_sum_exp(other);
  if (std::isnan(reference_norm) || std::isnan(other_norm)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (std::size_t token = 0; token < reference.size(); ++token) {
    const double log_p = static_cast<double>(reference[token]) - reference_norm;
    const double p = std::exp(log_p);
    if (p == 0) continue;  // its limit is zero, whatever q
    sum += p * (log_p - (static_cast<double>(other[token]) - other_norm));
  }
  return std::max(sum, 0.0);  // rounding alone can take it below
}

TokenId top_token(std::span<const float> row) {
  KV_CHECK(!row.empty(), "a row of logits has at least one entry");
  std::size_t best = 0;
  for (std::size_t token = 1; token < row.size(); ++token) {
    if (row[token] > row[best] || (std::isnan(row[best]) && !std::isnan(row[token]))) best = token;
  }
  return static_cast<TokenId>(best);
}

double Divergence::add(std::span<const float> reference, std::span<const float> other) {
  const double kl = kl_divergence(reference, other);
  ++positions;
  same_top += top_token(reference) == top_token(other) ? 1 : 0;
  kl_sum += kl;
  return kl;
}

double Divergence::mean_kl() const {
  KV_CHECK(positions > 0, "a mean needs a position");
  return kl_sum / static_cast<double>(positions);
}

double Divergence::top_agreement() const {
  KV_CHECK(positions > 0, "a share needs a position");
  return static_cast<double>(same_top) / static_cast<double>(positions);
}

}  // namespace kvasir::quality
