#include "sched/queue_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::sched {
namespace {

using ::testing::HasSubstr;

constexpr QueuePolicy kPriority{Policy::priority, 1'000'000};

QueuePlace place(std::uint64_t id, std::int32_t priority, std::uint64_t arrived_us, QueuePolicy policy = kPriority) {
  return place_of(policy, RequestId(id), priority, arrived_us);
}

TEST(QueuePolicy, FirstComeIgnoresPriority) {
  const QueuePolicy fcfs;
  EXPECT_LT(place(1, 500, 9, fcfs), place(2, -500, 9, fcfs));
}

TEST(QueuePolicy, ALowerValueGoesFirst) {
  EXPECT_LT(place(2, 0, 100), place(1, 1, 100));
  EXPECT_LT(place(3, -1, 100), place(2, 0, 100));
}

TEST(QueuePolicy, EqualsKeepTheirOrderOfArrival) {
  EXPECT_LT(place(1, 5, 100), place(2, 5, 101));
  EXPECT_LT(place(1, 5, 100), place(2, 5, 100)) << "the id decides";
}

TEST(QueuePolicy, WaitingMakesUpForPriority) {
  const QueuePlace patient = place(1, 3, 0);
  EXPECT_LT(place(2, 0, 2'999'999), patient) << "three levels, less than three seconds later";
  EXPECT_GT(place(2, 0, 3'000'001), patient);
  EXPECT_GT(place(2, 0, 3'000'000), patient) << "just made up for: the earlier one";
}

TEST(QueuePolicy, TheFurthestPrioritiesStillAge) {
  EXPECT_LT(place(2, -kMaxPriority, 1'999'999'999), place(1, kMaxPriority, 0));
  EXPECT_GT(place(2, -kMaxPriority, 2'000'000'001), place(1, kMaxPriority, 0));
}

TEST(QueuePolicy, NamesGoBothWays) {
  for (const Policy policy : {Policy::fcfs, Policy::priority}) EXPECT_EQ(parse_policy(to_string(policy)), policy);
  EXPECT_EQ(parse_policy("lifo"), std::nullopt);
  EXPECT_EQ(parse_policy(""), std::nullopt);
}

TEST(QueuePolicy, WhatIsOutOfRangeIsNamed) {
  EXPECT_TRUE(validate(kPriority).ok());
  EXPECT_THAT(validate({Policy::priority, 0}).error().message, HasSubstr("ageing_us = 0"));
  EXPECT_THAT(validate({Policy::priority, ~0ull}).error().message, HasSubstr("valid are 1 to 86400000000"));
  EXPECT_TRUE(validate_priority(-1000).ok());
  EXPECT_THAT(validate_priority(1001).error().message, HasSubstr("priority is 1001, valid: -1000 to 1000"));
}

}  // namespace
}  // namespace kvasir::sched
