#include "sched/drain_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvasir::sched {
namespace {

TEST(DrainRate, IsTheMeanFromTheFirstStepOn) {
  DrainRate rate;
  EXPECT_EQ(rate.prompt_tokens_per_s(), 0);
  for (int i = 0; i < 10; ++i) {
    rate.observe(0.5, 1, 100);
    EXPECT_NEAR(rate.requests_per_s(), 2, 0.05) << "no slow start";
    EXPECT_NEAR(rate.prompt_tokens_per_s(), 200, 5);
  }
  EXPECT_DOUBLE_EQ(rate.busy_s(), 5);
}

TEST(DrainRate, FollowsWithinAFewWindows) {
  DrainRate rate;
  for (int i = 0; i < 1000; ++i) rate.observe(0.1, 0, 100);
  EXPECT_NEAR(rate.prompt_tokens_per_s(), 1000, 10);
  for (int i = 0; i < 900; ++i) rate.observe(0.1, 0, 10);
  EXPECT_NEAR(rate.prompt_tokens_per_s(), 100, 60);
}

TEST(DrainRate, UnmeasuredTimeChangesNothing) {
  DrainRate rate;
  rate.observe(1, 1, 50);
  const double before = rate.prompt_tokens_per_s();
  for (const double time : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) rate.observe(time, 9, 900);
  EXPECT_EQ(rate.prompt_tokens_per_s(), before);
}

TEST(RetryAfter, IsTheTimeToDrainWhatWaits) {
  DrainRate rate;
  rate.observe(1, 2, 100);
  const double per_s = rate.prompt_tokens_per_s();
  EXPECT_EQ(retry_after_s(1000, rate), static_cast<std::uint32_t>(std::ceil(1000 / per_s)));
  EXPECT_EQ(retry_after_s(1000, rate), 10u);
}

TEST(RetryAfter, StaysBetweenOneSecondAndTwoMinutes) {
  DrainRate rate;
  rate.observe(1, 1, 100);
  EXPECT_EQ(retry_after_s(0, rate), 1u);
  EXPECT_EQ(retry_after_s(1, rate), 1u);
  EXPECT_EQ(retry_after_s(1'000'000'000, rate), 120u);
}

TEST(RetryAfter, WithNothingFinishedItGrowsWithTheTimeThatTook) {
  DrainRate rate;
  EXPECT_EQ(retry_after_s(5000, rate), 1u);
  rate.observe(8, 0, 0);
  EXPECT_EQ(retry_after_s(5000, rate), 8u);
  rate.observe(500, 0, 0);
  EXPECT_EQ(retry_after_s(5000, rate), 120u);
}

}  // namespace
}  // namespace kvasir::sched
