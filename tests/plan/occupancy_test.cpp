// What a traffic holds over time, beside a twin that looks at every token of every sequence.
#include "plan/occupancy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/plan/mixes.hpp"

namespace kvasir::plan {
namespace {

constexpr ServiceModel kService{2000, 0.05};

struct Moment {
  double seconds = 0, sequences = 0, tokens = 0, blocks = 0, bytes = 0;
};

// Every moment between two changes, each looked up afresh.
std::vector<Moment> naive(const ArrivalPlan& plan, const KvGroups& kv) {
  std::vector<double> changes{plan.from_s, plan.to_s};
  for (const auto& [at_s, one] : plan.arrivals) {
    changes.push_back(at_s);
    for (std::uint64_t j = 0; j <= one.output; ++j)
      changes.push_back(at_s + static_cast<double>(one.prompt) / 2000 + 0.05 * static_cast<double>(j));
  }
  std::sort(changes.begin(), changes.end());
  std::vector<Moment> out;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    if (changes[i - 1] < plan.from_s || changes[i] > plan.to_s || changes[i] == changes[i - 1]) continue;
    const double now = (changes[i - 1] + changes[i]) / 2;
    Moment moment;
    moment.seconds = changes[i] - changes[i - 1];
    for (const auto& [at_s, one] : plan.arrivals) {
      const double decoding = now - at_s - static_cast<double>(one.prompt) / 2000;
      if (now < at_s || decoding >= 0.05 * static_cast<double>(one.output)) continue;
      const std::uint64_t tokens = one.prompt + (decoding < 0 ? 0 : static_cast<std::uint64_t>(decoding / 0.05) + 1);
      moment.sequences += 1;
      moment.tokens += static_cast<double>(tokens);
      for (const PlannedGroup& g : kv.groups) moment.blocks += static_cast<double>(g.blocks(tokens));
      moment.bytes += static_cast<double>(kv.block_bytes(tokens).value() + kv.state_bytes);
    }
    out.push_back(moment);
  }
  return out;
}

double share_at_most(const std::vector<Moment>& moments, double Moment::*value, double most) {
  double below = 0, all = 0;
  for (const Moment& moment : moments) {
    all += moment.seconds;
    if (moment.*value <= most) below += moment.seconds;
  }
  return below / all;
}

// The value is reached for such a share of the time, and the one below it is not.
void expect_same(const TimePercentiles& told, const std::vector<Moment>& moments, double Moment::*value) {
  double mean = 0, all = 0, most = 0;
  for (const Moment& moment : moments) {
    mean += moment.*value * moment.seconds;
    all += moment.seconds;
    most = std::max(most, moment.*value);
  }
  EXPECT_NEAR(told.mean / (mean / all), 1, 1e-9);
  EXPECT_EQ(told.max, most);
  const std::pair<double, double> points[] = {{0.5, told.p50}, {0.95, told.p95}, {0.99, told.p99}};
  for (const auto& [share, point] : points) {
    EXPECT_GE(share_at_most(moments, value, point), share - 1e-9);
    EXPECT_LT(share_at_most(moments, value, point - 1), share + 1e-9);
  }
}

TEST(Occupancy, IsThatOfTheTwin) {
  std::mt19937_64 random(9);
  for (const std::uint32_t block : {16u, 32u, 128u}) {
    const KvGroups kv = test::groups(test::many_kinds(), block);
    ArrivalPlan plan;
    double now = 0;
    for (int i = 0; i < 60; ++i) {
      if (i % 7 != 0) now += static_cast<double>(random() % 1000) / 777;  // some arrive together
      plan.arrivals.push_back({now, {1 + random() % 300, 1 + random() % 120, 1}});
    }
    plan.from_s = block == 32 ? 7.25 : 0;
    plan.to_s = now;
    const std::vector<Moment> moments = naive(plan, kv);
    const Occupancy told = simulate_occupancy(plan, kv, block, kService).value();
    expect_same(told.sequences, moments, &Moment::sequences);
    expect_same(told.blocks, moments, &Moment::blocks);
    expect_same(told.bytes, moments, &Moment::bytes);
    // Tokens are a line where the twin has steps.
    double mean = 0;
    for (const Moment& moment : moments) mean += moment.tokens * moment.seconds;
    EXPECT_NEAR(told.tokens.mean / (mean / told.seconds), 1, 0.001);
    EXPECT_NEAR(share_at_most(moments, &Moment::tokens, told.tokens.p95), 0.95, 0.02);
  }
}

// Little's law: sequences held = rate x stay; bytes = rate x byte-seconds of a life.
TEST(Occupancy, OfPoissonArrivalsKeepsLittlesLaw) {
  const KvGroups kv = test::groups(test::many_kinds());
  const LengthMix mix = test::mix("300+50:3,20+400:1");
  const ArrivalPlan plan = poisson_arrivals(mix, 8, kService, 1).value();
  const Occupancy told = simulate_occupancy(plan, kv, 32, kService).value();
  double stay = 0, held = 0;
  for (const SequenceLength& one : mix.lengths) {
    const HeldOverLife life = held_over_life(kv, one, kService);
    stay += one.weight / 4 * life.residence_s;
    held += one.weight / 4 * (life.blocks + life.residence_s * static_cast<double>(kv.state_bytes));
  }
  EXPECT_NEAR(told.sequences.mean / (8 * stay), 1, 0.05);
  EXPECT_NEAR(told.bytes.mean / (8 * held), 1, 0.05);
  // Of a Poisson process as many are there as a Poisson variable: its 99th percentile.
  EXPECT_NEAR(told.sequences.p99, 8 * stay + 2.33 * std::sqrt(8 * stay), 0.06 * 8 * stay);
  EXPECT_GE(plan.from_s, kService.residence_s(mix.lengths[1])) << "the longest stay has passed";
  const Occupancy again = simulate_occupancy(poisson_arrivals(mix, 8, kService, 1).value(), kv, 32, kService).value();
  EXPECT_EQ(again.bytes.p99, told.bytes.p99);
  EXPECT_NE(simulate_occupancy(poisson_arrivals(mix, 8, kService, 2).value(), kv, 32, kService).value().bytes.mean,
            told.bytes.mean);
}

TEST(Occupancy, WhatCannotBeSimulatedIsRefused) {
  LengthMix mix = test::mix("10+10:1,10+10:1");
  mix.arrivals_s = {3, 3};
  EXPECT_THAT(recorded_arrivals(mix).error().message, testing::HasSubstr("at one moment"));
  const LengthMix long_stay = test::mix("10+2000000000:1");
  EXPECT_THAT(poisson_arrivals(long_stay, 100, kService, 1).error().message,
              testing::AllOf(testing::HasSubstr("100 requests a second"), testing::HasSubstr("valid: at most")));
  ArrivalPlan plan{{{0, long_stay.lengths[0]}}, 0, 1};
  EXPECT_THAT(simulate_occupancy(plan, test::groups(test::llama2_7b()), 32, kService).error().message,
              testing::HasSubstr("62500003"));
}

}  // namespace
}  // namespace kvasir::plan
