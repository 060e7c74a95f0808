// Figures that others published, and a count of every row where a formula is used.
#include "plan/roofline.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "artifact/parameter_count.hpp"
#include "base/prng.hpp"
#include "plan/devices.hpp"
#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using artifact::ModelShape;

StepWork work_of(const PlanInput& input, const ParallelLayout& layout = {}) {
  Result<StepWork> work = step_work(input, *plan_capacity(input), layout);
  EXPECT_TRUE(work.ok()) << (work.ok() ? "" : work.error().message);
  return work.ok() ? *work : StepWork{};
}

Machine machine_of(const char* name) {
  const Device device = find_device(name)->device;
  return {device.bandwidth, device.peak(), 1};
}

ModelShape llama2_7b() {
  ModelShape shape = test::llama2_7b();
  for (artifact::LayerShape& layer : shape.layers) layer.feed_forward = 11'008;
  shape.parameters = artifact::count_parameters(shape)->total;
  return shape;
}

ModelShape mixture(std::uint32_t experts, std::uint32_t used) {
  ModelShape shape = test::plain(8, 1024, 16, 4, 64);
  for (artifact::LayerShape& layer : shape.layers) {
    layer.experts = experts;
    layer.expert_width = 512;
  }
  shape.experts_per_token = used;
  shape.parameters = artifact::count_parameters(shape)->total;
  return shape;
}

// kipply, "Transformer Inference Arithmetic" (2022): 312 TFLOPS over 1.5 TB/s is 208; with the datasheet's 1,555 GB/s
// 200.6. Google, "How to Scale Your Model" (2025): 990 TFLOPS over 3.35 TB/s is 295 on H100.
TEST(Roofline, WeightsOf16BitsLeaveTheWallAtPeakOverBandwidth) {
  const StepWork work = work_of(test::weighed_input(llama2_7b(), 1, 100));
  EXPECT_EQ(weights_wall_batch(work, machine_of("a100-40gb")), 201u);
  EXPECT_EQ(weights_wall_batch(work, machine_of("h100")), 296u) << "295.4, and a batch is whole";
  EXPECT_EQ(weights_wall_batch(work, {1.5e12, 312e12, 1}), 209u) << "at 208 both take as long";
  EXPECT_EQ(weights_wall_batch(work, {1.5e12, 312e12, 0.5}), 209u) << "efficiency is of both";
}

// The same page: 13e9 parameters x 2 bytes / 1.5 TB/s = 17.3 ms a token; here the 6.6e9 of Llama-2-7B that a step
// reads.
TEST(Roofline, AStepOfOneReadsTheWeights) {
  const StepWork work = work_of(test::weighed_input(llama2_7b(), 1, 1));
  const double parameters = 6'738'415'616.0 - 32'000.0 * 4096;  // without the table; norms counted, Meta's number
  EXPECT_EQ(work.weight_bytes(1), 2 * parameters);
  EXPECT_EQ(work.body_operations + work.head_operations, 2 * parameters);
  const StepTime step = decode_step(work, {1.5e12, 312e12, 1}, 1, 1);
  EXPECT_NEAR(step.seconds(), 2 * parameters / 1.5e12, 1e-6);
  EXPECT_TRUE(step.is_bandwidth_bound());
}

TEST(Roofline, TheCacheKeepsAStepAtTheWall) {
  const StepWork work = work_of(test::weighed_input(llama2_7b(), 1, 4096));
  EXPECT_EQ(work.cache_bytes(4096), 2.0 * (1 << 30)) << "2 GiB a sequence";
  // Half a MiB a token is read for 4 x 32 x 4096 operations: 1 an element, where the machine could do 306 an element.
  EXPECT_EQ(wall_batch(work, machine_of("a100-80gb"), 4096), std::nullopt);
  EXPECT_GT(*wall_batch(work, machine_of("a100-80gb"), 16), *weights_wall_batch(work, machine_of("a100-80gb")));
}

TEST(Roofline, LatentsComputeMoreThanTheyRead) {
  ModelShape shape = test::deepseek(60);
  shape.rope_dim = 64;
  shape.parameters = 236'000'000'000;
  const StepWork work = work_of(test::weighed_input(shape, 1, 1000));
  // 128 heads use each latent row as K (576) and as V (512).
  EXPECT_EQ(work.operations(1000) - work.operations(0), 1000.0 * 60 * 2 * 128 * (576 + 512));
}

TEST(Roofline, DistinctExpertsAreExpected) {
  const ModelShape shape = mixture(8, 2);
  const StepWork work = work_of(test::weighed_input(shape, 1, 100));
  const auto count = *artifact::count_parameters(shape);
  const double table = static_cast<double>(count.embedding);
  EXPECT_DOUBLE_EQ(work.routed_share, 0.25);
  EXPECT_DOUBLE_EQ(work.weight_bytes(1), 2 * (static_cast<double>(count.active) - table))
      << "one token reads what it uses";
  EXPECT_DOUBLE_EQ(work.weight_bytes(1e9), 2 * (static_cast<double>(count.total) - table)) << "many read all";

  // Against drawn choices: distinct experts of 8 that 5 tokens with 2 each choose.
  PhiloxSequence random(3, 3);
  double distinct = 0;
  const int rounds = 20'000;
  for (int round = 0; round < rounds; ++round) {
    unsigned seen = 0;
    for (int token = 0; token < 5; ++token) {
      const auto first = random.below(8);
      auto second = random.below(7);
      second += second >= first ? 1 : 0;
      seen |= (1u << first) | (1u << second);
    }
    distinct += __builtin_popcount(seen);
  }
  const double share = (work.weight_bytes(5) - work.resident_bytes) / work.routed_bytes;
  EXPECT_NEAR(share, distinct / rounds / 8, 0.01);
}

TEST(Roofline, PublishedActiveParametersStandForExperts) {
  ModelShape shape = test::deepseek(61);
  shape.rope_dim = 64;
  shape.parameters = 671'000'000'000;
  shape.active_parameters = 37'000'000'000;
  shape.tied_head = true;  // no table to leave out
  const StepWork work = work_of(test::weighed_input(shape, 1, 100));
  EXPECT_NEAR(work.weight_bytes(1), 74e9, 1e3);
  EXPECT_NEAR(work.weight_bytes(1e6), 1342e9, 1e3);
}

TEST(Roofline, APromptsRowsAreCountedOneByOne) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    PhiloxSequence random(seed, 11);
    ModelShape shape = test::plain(1, 64, 4, 2, 16);
    shape.layers[0].window = random.below(2) == 0 ? 0 : 1 + static_cast<std::uint32_t>(random.below(60));
    shape.layers[0].merged = 1 + static_cast<std::uint32_t>(random.below(5));
    shape.parameters = 1'000'000;
    const StepWork work = work_of(test::weighed_input(shape, 1, 1));
    const std::uint64_t prompt = 1 + random.below(300);
    double rows = 0;
    for (std::uint64_t at = 1; at <= prompt; ++at) rows += static_cast<double>(work.kv.groups[0].rows(at));
    const StepTime time = prefill(work, {1e9, 1e9, 1}, prompt);
    const double weights = static_cast<double>(prompt) * work.body_operations + work.head_operations;
    ASSERT_NEAR(time.operations - weights, rows * 2 * 4 * (16 + 16), 1e-3) << seed;
  }
}

TEST(Roofline, TheLargestBatchUnderATargetIsAnEdge) {
  const StepWork work = work_of(test::weighed_input(llama2_7b(), 1, 2000));
  const Machine machine = machine_of("a100-80gb");
  const std::uint64_t most = most_batch(work, machine, 2000, 0.020);
  ASSERT_GT(most, 1u);
  EXPECT_LE(decode_step(work, machine, most, 2000).seconds(), 0.020);
  EXPECT_GT(decode_step(work, machine, most + 1, 2000).seconds(), 0.020);
  EXPECT_EQ(most_batch(work, machine, 2000, 0.001), 0u) << "the weights alone take 6.5 ms";
  EXPECT_EQ(wall_batch(work, {0, 1e12, 1}, 100), std::nullopt) << "a rate that nobody knows";
}

TEST(Roofline, DevicesShareAStep) {
  const PlanInput input = test::weighed_input(llama2_7b(), 1, 1000);
  const StepWork one = work_of(input), four = work_of(input, {.tensor = 4});
  EXPECT_NEAR(four.weight_bytes(1) / one.weight_bytes(1), 0.25, 0.001) << "but for norms";
  EXPECT_DOUBLE_EQ(four.cache_bytes(1000), one.cache_bytes(1000) / 4);
  EXPECT_DOUBLE_EQ(four.operations(1000), one.operations(1000) / 4);
  const StepWork staged = work_of(input, {.pipeline = 4});
  EXPECT_EQ(staged.weight_bytes(1), one.weight_bytes(1)) << "a token passes all stages";
}

TEST(Roofline, WithoutWeightsThereIsNoBound) {
  PlanInput input = test::weighed_input(test::llama2_7b(), 1, 100);
  EXPECT_FALSE(step_work(input, *plan_capacity(input), {}).ok());
}

}  // namespace
}  // namespace kvasir::plan
