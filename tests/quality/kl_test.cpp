#include "quality/kl.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kvasir::quality {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logs(std::vector<double> probabilities) {
  std::vector<float> row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p)));
  return row;
}

TEST(LogSumExp, HandValuesAndShift) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{0, 0, 0, 0}), std::log(4.0), 1e-15);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{1, 2, 3}), 3.4076059644443806, 1e-14);
  // Far beyond exp's range in both directions.
  EXPECT_NEAR(log_sum_exp(std::vector<float>{10000, 10000}), 10000 + std::log(2.0), 1e-11);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-10000, -10000}), -10000 + std::log(2.0), 1e-11);
  EXPECT_EQ(log_sum_exp(std::vector<float>{5, -kInfinity}), 5.0);
}

TEST(LogProbability, SumsToOne) {
  const std::vector<float> row = {0.5f, -2, 3, 700, 699};
  double sum = 0;
  for (TokenId token = 0; token < 5; ++token) sum += std::exp(log_probability(row, token));
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Kl, HandValue) {
  // KL((1/2, 1/4, 1/4) || (1/4, 1/2, 1/4)) = 1/2 ln 2 - 1/4 ln 2. The rows are log-probabilities rounded to float.
  const auto p = logs({0.5, 0.25, 0.25}), q = logs({0.25, 0.5, 0.25});
  EXPECT_NEAR(kl_divergence(p, q), 0.25 * std::log(2.0), 1e-7);
}

TEST(Kl, DirectionMatters) {
  const auto p = logs({0.9, 0.1}), q = logs({0.5, 0.5});
  EXPECT_NEAR(kl_divergence(p, q), 0.9 * std::log(1.8) + 0.1 * std::log(0.2), 1e-7);
  EXPECT_NEAR(kl_divergence(q, p), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(5.0), 1e-7);
}

TEST(Kl, ZeroForEqualAndForShiftedRows) {
  const std::vector<float> row = {1, -3, 0.25f, 8};
  std::vector<float> shifted = row;
  for (float& logit : shifted) logit += 64;  // exact in float for these values
  EXPECT_EQ(kl_divergence(row, row), 0);
  EXPECT_NEAR(kl_divergence(row, shifted), 0, 1e-13);  // some units in the last place of the norm, 72
}

TEST(Kl, SeesSmallDifferences) {
  // For q = p + e: KL ~ Var_p(e) / 2. Two equal tokens, one raised by e: e^2 / 8.
  const float e = 0x1p-14f;
  const std::vector<float> p = {0, 0}, q = {0, e};
  const double expected = static_cast<double>(e) * static_cast<double>(e) / 8;
  EXPECT_NEAR(kl_divergence(p, q), expected, 1e-4 * expected);
}

TEST(Kl, LargeLogitsDoNotOverflow) {
  const std::vector<float> p = {3.0e38f, 0, 0}, q = {0, 0, 0};
  EXPECT_NEAR(kl_divergence(p, q), std::log(3.0), 1e-12);
}

TEST(Kl, ProbabilityZero) {
  const std::vector<float> p = {0, -kInfinity}, q = {0, 0};
  EXPECT_NEAR(kl_divergence(p, q), std::log(2.0), 1e-15);
  EXPECT_EQ(kl_divergence(q, p), std::numeric_limits<double>::infinity());
  EXPECT_EQ(kl_divergence(p, p), 0);
}

TEST(Kl, NoDistributionIsNan) {
  const std::vector<float> good = {0, 1};
  for (const std::vector<float>& bad :
       {std::vector<float>{0, kNan}, std::vector<float>{kInfinity, 0}, std::vector<float>{-kInfinity, -kInfinity}}) {
    EXPECT_TRUE(std::isnan(kl_divergence(good, bad)));
    EXPECT_TRUE(std::isnan(kl_divergence(bad, good)));
  }
}

TEST(TopToken, LowestIdAmongEquals) {
  EXPECT_EQ(top_token(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(top_token(std::vector<float>{-5}), 0);
  EXPECT_EQ(top_token(std::vector<float>{kNan, -kInfinity, kNan, -2}), 3);
}

TEST(DivergenceTotals, MeansOverPositions) {
  Divergence total;
  const std::vector<float> a = {0, 1}, b = {1, 0};
  EXPECT_EQ(total.add(a, a), 0);
  const double kl = total.add(a, b);
  EXPECT_EQ(kl, kl_divergence(a, b));
  EXPECT_EQ(total.positions, 2u);
  EXPECT_EQ(total.mean_kl(), kl / 2);
  EXPECT_EQ(total.top_agreement(), 0.5);
}

TEST(KlDeathTest, RowsOfDifferentSizeAreAProgrammerError) {
  const std::vector<float> two = {0, 0}, three = {0, 0, 0};
  EXPECT_DEATH(kl_divergence(two, three), "both rows are over one vocabulary");
}

}  // namespace
}  // namespace kvasir::quality
