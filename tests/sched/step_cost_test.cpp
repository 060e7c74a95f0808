#include "sched/step_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/sched/machine.hpp"

namespace kvasir::sched {
namespace {

using test::kSmallModel;
using test::Machine;

StepWork work_of(std::uint32_t decoding, std::uint32_t context, std::uint32_t chunk_first, std::uint32_t chunk) {
  StepWork work;
  for (std::uint32_t i = 0; i < decoding; ++i) work.add_decode(context + i, 1);
  if (chunk > 0) work.add_prefill(chunk_first, chunk);
  return work;
}

StepWork random_work(PhiloxSequence& random) {
  return work_of(random.below(33), random.below(3000), random.below(4000),
                 random.below(2) == 0 ? 1 + random.below(128) : 0);
}

void learn(StepCost& cost, const Machine& machine, int steps, PhiloxSequence& random) {
  for (int i = 0; i < steps; ++i) {
    const StepWork work = random_work(random);
    cost.observe(work, machine.seconds(work, random));
  }
}

// The largest relative error of predictions over the steps that matter.
double worst_error(const StepCost& cost, const CostCoefficients& truth) {
  double worst = 0;
  for (const std::uint32_t decoding : {1u, 4u, 16u, 32u})
    for (const std::uint32_t context : {100u, 1000u, 3000u})
      for (const std::uint32_t chunk : {0u, 16u, 64u}) {
        const StepWork work = work_of(decoding, context, 2000, chunk);
        worst = std::max(worst, std::abs(cost.predict(work) / truth.predict(work) - 1));
      }
  return worst;
}

TEST(StepWork, CountsRowsAndTheKeysTheyAttendTo) {
  StepWork work;
  work.add_prefill(0, 4);   // 1 + 2 + 3 + 4
  work.add_prefill(10, 2);  // 11 + 12
  work.add_decode(99, 1);
  EXPECT_EQ(work, (StepWork{.decode_rows = 1, .prefill_rows = 6, .decode_keys = 100, .prefill_keys = 33}));
  StepWork split;
  split.add_prefill(5, 3);
  split.add_prefill(8, 4);
  StepWork whole;
  whole.add_prefill(5, 7);
  EXPECT_EQ(split, whole) << "how a prompt is cut does not change the sum";
  StepWork large;
  large.add_prefill(3'000'000'000, 1'000'000'000);
  EXPECT_GT(large.prefill_keys, 3'000'000'000'000'000'000u) << "64 bits";
}

TEST(StepCost, BeforeItHasDataItIsCautious) {
  const StepCost cost;
  EXPECT_EQ(cost.samples(), 0u);
  EXPECT_EQ(cost.coefficients(), kCautiousCost);
  for (const std::uint32_t decoding : {1u, 16u})
    EXPECT_GT(cost.predict(work_of(decoding, 500, 0, 32)), 50e-3) << "no more than a small chunk beside a stream";
}

TEST(StepCost, LearnsAMachineExactlyWhereThereIsNoNoise) {
  PhiloxSequence random(1);
  StepCost cost;
  learn(cost, {kSmallModel}, 300, random);
  EXPECT_LT(worst_error(cost, kSmallModel), 0.005);
  const CostCoefficients c = cost.coefficients();
  EXPECT_NEAR(c.prefill_row / kSmallModel.prefill_row, 1, 0.05);
  EXPECT_NEAR(c.decode_key / kSmallModel.decode_key, 1, 0.05);
}

TEST(StepCost, NoiseAndOutliersDoNotLeadItAstray) {
  std::vector<double> errors;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    PhiloxSequence random(seed);
    StepCost cost;
    learn(cost, {kSmallModel, 0.15f, 0.02f, 20}, 400, random);
    errors.push_back(worst_error(cost, kSmallModel));
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[20], 0.20) << "median over seeds";
  EXPECT_LT(errors.back(), 0.60) << "an outlier of the last moments";
}

TEST(StepCost, OneFrozenStepCostsLittle) {
  PhiloxSequence random(3);
  StepCost cost;
  learn(cost, {kSmallModel, 0.05f}, 300, random);
  const StepWork work = work_of(16, 500, 0, 0);
  const double before = cost.predict(work);
  cost.observe(work, 100 * before);  // the process was stopped for seconds
  EXPECT_LT(cost.predict(work), 1.3 * before);
  learn(cost, {kSmallModel, 0.05f}, 60, random);
  EXPECT_NEAR(cost.predict(work) / before, 1, 0.1);
}

TEST(StepCost, FollowsAMachineThatChanges) {
  PhiloxSequence random(4);
  StepCost cost;
  CostCoefficients slow = kSmallModel, fast = kSmallModel;
  for (auto* c : {&slow.fixed, &slow.decode_row, &slow.prefill_row, &slow.decode_key, &slow.prefill_key}) *c *= 8;
  learn(cost, {fast, 0.1f}, 300, random);
  learn(cost, {slow, 0.1f}, 60, random);
  EXPECT_LT(worst_error(cost, slow), 0.35) << "a neighbour took most of the cores";
  learn(cost, {fast, 0.1f}, 60, random);
  EXPECT_LT(worst_error(cost, fast), 0.25) << "and gave them back";
}

TEST(StepCost, AnHourOfDecodingForgetsNothingAboutPrompts) {
  PhiloxSequence random(5);
  const Machine machine{kSmallModel, 0.1f};
  StepCost cost;
  learn(cost, machine, 300, random);
  const double row = cost.coefficients().prefill_row;
  for (int i = 0; i < 20'000; ++i) {  // always the same 16 streams: fixed part and rows cannot be told apart
    const StepWork work = work_of(16, 200 + static_cast<std::uint32_t>(i) % 1000, 0, 0);
    cost.observe(work, machine.seconds(work, random));
  }
  EXPECT_NEAR(cost.coefficients().prefill_row, row, 0.25 * row);
  EXPECT_LT(worst_error(cost, kSmallModel), 0.35) << "also for other numbers of streams than it saw";
}

TEST(StepCost, CoefficientsAreNeverNegativeAndPredictionsNeverFall) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    PhiloxSequence random(seed, 9);
    StepCost cost;
    for (int i = 0; i < 200; ++i) {  // times that have nothing to do with the work
      cost.observe(random_work(random), 1e-4 + random.uniform());
      const CostCoefficients c = cost.coefficients();
      for (const double value : {c.fixed, c.decode_row, c.prefill_row, c.decode_key, c.prefill_key}) {
        ASSERT_GE(value, 0);
        ASSERT_TRUE(std::isfinite(value));
      }
      ASSERT_LE(cost.predict(work_of(3, 50, 0, 8)), cost.predict(work_of(3, 50, 0, 9)));
      ASSERT_LE(cost.predict(work_of(3, 50, 0, 8)), cost.predict(work_of(4, 50, 0, 8)));
    }
  }
}

TEST(StepCost, UnusableTimesAreIgnored) {
  StepCost cost;
  const StepWork work = work_of(1, 10, 0, 0);
  for (const double time :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    cost.observe(work, time);
  cost.observe({}, 1);
  EXPECT_EQ(cost.samples(), 0u);
  EXPECT_EQ(cost.coefficients(), kCautiousCost);
  cost.observe(work, 1e-300);
  cost.observe(work, 1e300);
  EXPECT_EQ(cost.samples(), 2u);
  EXPECT_TRUE(std::isfinite(cost.predict(work)));
}

TEST(StepCost, TheSameInputsGiveTheSameBits) {
  PhiloxSequence a(6), b(6);
  StepCost first, second;
  learn(first, {kSmallModel, 0.2f, 0.05f, 10}, 100, a);
  learn(second, {kSmallModel, 0.2f, 0.05f, 10}, 100, b);
  EXPECT_EQ(first.coefficients(), second.coefficients());
}

}  // namespace
}  // namespace kvasir::sched
