#include "stats/bootstrap.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir::stats {
namespace {

// Exponential values with mean `mean`; by inversion, so that the same seed gives the same values everywhere.
std::vector<double> exponential(std::size_t count, double mean, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(count);
  for (double& value : values) value = -mean * std::log((static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53);
  return values;
}

TEST(RatioOfMeans, EqualSamplesGiveOneWithoutWidth) {
  const std::vector<double> values = exponential(100, 3, 7);
  const auto interval = ratio_of_means(values, values, {});
  ASSERT_TRUE(interval.ok()) << interval.error().message;
  EXPECT_EQ(interval->estimate, 1.0);
  EXPECT_EQ(interval->low, 1.0);
  EXPECT_EQ(interval->high, 1.0);
}

TEST(RatioOfMeans, PairingCancelsWhatItemsShare) {
  // Twice the other sample, item by item: the items vary wildly, the ratio not at all. Unpaired it would be wide.
  const std::vector<double> denominator = exponential(50, 1, 3);
  std::vector<double> numerator = denominator;
  for (double& value : numerator) value *= 2;
  const auto interval = ratio_of_means(numerator, denominator, {});
  ASSERT_TRUE(interval.ok());
  EXPECT_DOUBLE_EQ(interval->low, 2.0);
  EXPECT_DOUBLE_EQ(interval->high, 2.0);
}

TEST(RatioOfMeans, WidthIsThatOfTheDeltaMethod) {
  // Independent exponentials of mean 1: the ratio's standard error is sqrt(2 / n), so the 95 % interval is about
  // 1.96 * sqrt(2 / n) to each side.
  const std::size_t n = 4000;
  const auto interval = ratio_of_means(exponential(n, 1, 11), exponential(n, 1, 12), {});
  ASSERT_TRUE(interval.ok());
  const double expected = 2 * 1.96 * std::sqrt(2.0 / static_cast<double>(n));
  EXPECT_NEAR(interval->high - interval->low, expected, 0.1 * expected);
  EXPECT_LT(interval->low, interval->estimate);
  EXPECT_GT(interval->high, interval->estimate);
}

TEST(RatioOfMeans, IntervalCoversTheTruthAsOftenAsPromised) {
  std::size_t covered = 0;
  const std::size_t trials = 200;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    const auto interval = ratio_of_means(exponential(200, 3, 1000 + trial), exponential(200, 2, 5000 + trial),
                                         {.resamples = 400, .confidence = 0.9, .seed = trial});
    ASSERT_TRUE(interval.ok());
    covered += interval->low <= 1.5 && 1.5 <= interval->high ? 1 : 0;
  }
  // Binomial with 200 trials at 0.9: mean 180, deviation 4.2; four deviations to each side.
  EXPECT_GE(covered, 163u);
  EXPECT_LE(covered, 197u);
}

TEST(RatioOfMeans, BlocksWidenTheIntervalOfDependentItems) {
  // Every value repeated ten times: drawn singly the items look ten times as many as they are.
  std::vector<double> numerator;
  for (const double value : exponential(100, 1, 21)) numerator.insert(numerator.end(), 10, value);
  const std::vector<double> denominator(numerator.size(), 1.0);
  const auto single = ratio_of_means(numerator, denominator, {.block = 1});
  const auto blocks = ratio_of_means(numerator, denominator, {.block = 50});
  ASSERT_TRUE(single.ok() && blocks.ok());
  EXPECT_EQ(single->estimate, blocks->estimate);
  EXPECT_GT(blocks->high - blocks->low, 2 * (single->high - single->low));
}

TEST(RatioOfMeans, SameSeedSameInterval) {
  const std::vector<double> a = exponential(64, 1, 1), b = exponential(64, 1, 2);
  const auto first = ratio_of_means(a, b, {.seed = 5});
  const auto again = ratio_of_means(a, b, {.seed = 5});
  const auto other = ratio_of_means(a, b, {.seed = 6});
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->low, again->low);
  EXPECT_EQ(first->high, again->high);
  EXPECT_NE(first->low, other->low);
}

TEST(RatioOfMeans, RareDenominatorsAreInfiniteInTheUpperTail) {
  // One non-zero denominator in four: a resample misses it with probability (3/4)^4, well above the tail.
  const std::vector<double> numerator = {1, 1, 1, 1};
  const std::vector<double> denominator = {0, 0, 0, 1};
  const auto interval = ratio_of_means(numerator, denominator, {});
  ASSERT_TRUE(interval.ok());
  EXPECT_EQ(interval->high, std::numeric_limits<double>::infinity());
  EXPECT_GT(interval->low, 0);
}

TEST(RatioOfMeans, RefusesWhatHasNoAnswer) {
  const std::vector<double> two = {1, 2}, three = {1, 2, 3}, one = {1}, zeros = {0, 0};
  const std::vector<double> nan = {1, std::numeric_limits<double>::quiet_NaN()};
  const auto message = [](const Result<Interval>& result) {
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(message(ratio_of_means(two, three, {})), "paired samples differ in length: 2 and 3");
  EXPECT_EQ(message(ratio_of_means(one, one, {})), "a bootstrap needs at least two items, got 1");
  EXPECT_EQ(message(ratio_of_means(nan, two, {})), "a sample holds a value that is not finite");
  EXPECT_EQ(message(ratio_of_means(two, nan, {})), "a sample holds a value that is not finite");
  EXPECT_EQ(message(ratio_of_means(two, zeros, {})), "the denominator's mean must be positive, its sum is 0.000000");
  EXPECT_EQ(message(ratio_of_means(two, two, {.resamples = 1})), "resamples must be at least 2, got 1");
  EXPECT_EQ(message(ratio_of_means(two, two, {.confidence = 1})), "confidence must lie between 0 and 1, got 1.000000");
  EXPECT_EQ(message(ratio_of_means(two, two, {.block = 3})), "block must be 1 to the number of items, 2, got 3");
  EXPECT_EQ(message(ratio_of_means(two, two, {.block = 0})), "block must be 1 to the number of items, 2, got 0");
}

}  // namespace
}  // namespace kvasir::stats
