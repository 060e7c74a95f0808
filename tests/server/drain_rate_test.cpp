#include "server/drain_rate.hpp"

#include <gtest/gtest.h>

namespace kvasir::server {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(DrainRate, IsWhatWasMeasured) {
  DrainRate rate;
  rate.begin(100 * kSecond);
  for (std::uint64_t i = 1; i <= 10; ++i) rate.depart((100 + i) * kSecond);  // one a second
  EXPECT_EQ(rate.seconds_to_serve(30, 110 * kSecond), 30u);
  EXPECT_EQ(rate.seconds_to_serve(30, 120 * kSecond), 60u);  // ten seconds more without a departure: half as fast
  EXPECT_EQ(rate.seconds_to_serve(0, 110 * kSecond), kMinRetryAfter_s);
  EXPECT_EQ(rate.seconds_to_serve(1000, 110 * kSecond), kMaxRetryAfter_s);
}

TEST(DrainRate, OnlyTheLastDeparturesCount) {
  DrainRate rate;
  rate.begin(0);
  std::uint64_t now = 0;
  for (int i = 0; i < 50; ++i) rate.depart(now += 10 * kSecond);
  for (int i = 0; i < 40; ++i) rate.depart(now += kSecond / 4);  // it became faster
  EXPECT_EQ(rate.seconds_to_serve(40, now), 10u);
}

TEST(DrainRate, BeforeTheFirstDepartureItIsNoFasterThanTheWait) {
  DrainRate rate;
  rate.begin(5 * kSecond);
  EXPECT_EQ(rate.seconds_to_serve(8, 5 * kSecond), kMinRetryAfter_s);
  EXPECT_EQ(rate.seconds_to_serve(8, 7 * kSecond), 16u);
}

TEST(DrainRate, TimeWithoutAQueueDoesNotCount) {
  DrainRate rate;
  rate.begin(0);
  rate.depart(kSecond);
  rate.empty();
  rate.begin(1000 * kSecond);
  rate.depart(1001 * kSecond);
  EXPECT_EQ(rate.seconds_to_serve(3, 1001 * kSecond), 3u);
}

}  // namespace
}  // namespace kvasir::server
