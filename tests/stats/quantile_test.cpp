#include "stats/quantile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "stats/quantile_interval.hpp"

namespace kvasir::stats {
namespace {

// numpy.percentile([1, 2, 4, 8], [0, 25, 50, 90, 100])
TEST(Quantile, IsNumpysLinearOne) {
  const std::vector<double> values = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 6.8);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{5}, 0.99), 5);
}

TEST(Moments, DeviationIsThatOfThePopulation) {
  const Moments result = moments(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(result.count, 8u);
  EXPECT_DOUBLE_EQ(result.mean, 5);
  EXPECT_DOUBLE_EQ(result.deviation, 2);
  EXPECT_EQ(moments({}).mean, 0);
}

std::vector<double> exponential(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(count);
  for (double& value : values) value = -std::log((static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53);
  return values;
}

std::vector<std::uint32_t> singles(std::size_t count) { return std::vector<std::uint32_t>(count, 1); }

TEST(QuantileIntervals, EstimatesAreTheQuantilesInTheOrderAsked) {
  std::vector<double> values = exponential(101, 3);
  const auto intervals = quantile_intervals(values, singles(101), std::vector<double>{0.99, 0.5, 0.995}, {});
  ASSERT_TRUE(intervals.ok()) << intervals.error().message;
  std::ranges::sort(values);
  ASSERT_EQ(intervals->size(), 3u);
  EXPECT_DOUBLE_EQ((*intervals)[0].estimate, quantile(values, 0.99));
  EXPECT_DOUBLE_EQ((*intervals)[1].estimate, quantile(values, 0.5));
  EXPECT_DOUBLE_EQ((*intervals)[2].estimate, quantile(values, 0.995));
  for (const Interval& interval : *intervals) {
    EXPECT_LE(interval.low, interval.estimate);
    EXPECT_GE(interval.high, interval.estimate);
  }
}

TEST(QuantileIntervals, CoversTheTruthAsOftenAsPromised) {
  std::size_t covered = 0;
  for (std::size_t trial = 0; trial < 200; ++trial) {
    const auto intervals = quantile_intervals(exponential(200, 100 + trial), singles(200), std::vector<double>{0.5},
                                              {.resamples = 300, .confidence = 0.9, .seed = trial});
    ASSERT_TRUE(intervals.ok());
    covered += (*intervals)[0].low <= std::log(2.0) && std::log(2.0) <= (*intervals)[0].high ? 1 : 0;
  }
  EXPECT_GE(covered, 163u);  // binomial: mean 180, deviation 4.2; four deviations to each side
  EXPECT_LE(covered, 197u);
}

TEST(QuantileIntervals, ClustersWidenTheIntervalOfDependentValues) {
  std::vector<double> values;
  for (const double value : exponential(100, 9)) values.insert(values.end(), 20, value);
  const std::vector<double> median = {0.5};
  const auto alone = quantile_intervals(values, singles(values.size()), median, {.resamples = 400});
  const auto clustered = quantile_intervals(values, std::vector<std::uint32_t>(100, 20), median, {.resamples = 400});
  ASSERT_TRUE(alone.ok() && clustered.ok());
  EXPECT_EQ((*alone)[0].estimate, (*clustered)[0].estimate);
  EXPECT_GT((*clustered)[0].high - (*clustered)[0].low, 2 * ((*alone)[0].high - (*alone)[0].low));
}

TEST(QuantileIntervals, EmptyClustersChangeNothing) {
  const std::vector<double> values = exponential(40, 5), p = {0.5, 0.9};
  std::vector<std::uint32_t> sizes = singles(40);
  const auto plain = quantile_intervals(values, sizes, p, {});
  sizes.insert(sizes.begin() + 7, 3, 0u);
  const auto padded = quantile_intervals(values, sizes, p, {});
  ASSERT_TRUE(plain.ok() && padded.ok());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*plain)[i].low, (*padded)[i].low);
    EXPECT_EQ((*plain)[i].high, (*padded)[i].high);
  }
}

TEST(QuantileIntervals, OneValueHasNoWidth) {
  const auto intervals = quantile_intervals(std::vector<double>{4}, singles(1), std::vector<double>{0, 1}, {});
  ASSERT_TRUE(intervals.ok());
  for (const Interval& interval : *intervals) {
    EXPECT_EQ(interval.low, 4);
    EXPECT_EQ(interval.high, 4);
  }
}

TEST(QuantileIntervals, RefusesWhatHasNoAnswer) {
  const std::vector<double> two = {1, 2}, half = {0.5}, nan = {1, std::numeric_limits<double>::quiet_NaN()};
  const auto message = [](const Result<std::vector<Interval>>& result) {
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(message(quantile_intervals({}, {}, half, {})), "a quantile needs at least one value");
  EXPECT_EQ(message(quantile_intervals(two, singles(3), half, {})), "cluster sizes sum to 3, but there are 2 values");
  EXPECT_EQ(message(quantile_intervals(nan, singles(2), half, {})), "a sample holds a value that is not finite");
  EXPECT_EQ(message(quantile_intervals(two, singles(2), std::vector<double>{1.5}, {})),
            "a probability must lie in [0, 1], got 1.500000");
  EXPECT_EQ(message(quantile_intervals(two, singles(2), half, {.resamples = 1})),
            "resamples must be at least 2, got 1");
  EXPECT_EQ(message(quantile_intervals(two, singles(2), half, {.confidence = 0})),
            "confidence must lie between 0 and 1, got 0.000000");
}

}  // namespace
}  // namespace kvasir::stats
