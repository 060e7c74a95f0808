// What devices hold adds up to the model and to what is stored more than once.
#include "plan/parallel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/parameter_count.hpp"
#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using artifact::ModelShape;
using testing::ElementsAre;
using testing::HasSubstr;

PlanInput input_of(ModelShape shape, std::uint64_t requests = 4, std::uint64_t length = 1000) {
  return test::weighed_input(std::move(shape), requests, length);
}

ModelShape llama3_70b() {
  ModelShape shape = test::llama3_70b();
  shape.vocabulary = 128'256;
  for (artifact::LayerShape& layer : shape.layers) layer.feed_forward = 28'672;
  shape.parameters = artifact::count_parameters(shape)->total;
  return shape;
}

ModelShape mixture() {
  ModelShape shape = test::plain(6, 1024, 16, 4, 64);
  for (artifact::LayerShape& layer : shape.layers) {
    layer.experts = 30;
    layer.shared_experts = 1;
    layer.expert_width = 512;
  }
  shape.experts_per_token = 2;
  shape.parameters = artifact::count_parameters(shape)->total;
  return shape;
}

ParallelPlan plan_of(const PlanInput& input, const ParallelLayout& layout) {
  Result<ParallelPlan> plan = plan_parallel(input, layout);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : ParallelPlan{};
}

std::uint64_t sum_of(const ParallelPlan& plan, std::uint64_t CapacityPlan::*what) {
  std::uint64_t sum = 0;
  for (const RankPlan& one : plan.ranks) sum += one.rank.devices * (one.plan.*what);
  return sum;
}

std::string refused(const ModelShape& shape, const ParallelLayout& layout) {
  const Status status = check_layout(shape, layout);
  return status.ok() ? "fits" : status.error().message;
}

// vLLM's documentation and tests give these.
TEST(StageLayers, TheRemainderGoesToTheMiddle) {
  EXPECT_THAT(stage_layers(20, 4), ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(stage_layers(61, 2), ElementsAre(31, 30));
  EXPECT_THAT(stage_layers(61, 4), ElementsAre(15, 15, 16, 15));
  EXPECT_THAT(stage_layers(5, 3), ElementsAre(2, 2, 1));
  EXPECT_THAT(stage_layers(22, 4), ElementsAre(5, 6, 6, 5));
  EXPECT_THAT(stage_layers(7, 1), ElementsAre(7));
  for (std::uint32_t layers = 1; layers < 100; ++layers) {
    for (std::uint32_t stages = 1; stages <= layers; ++stages) {
      std::uint32_t sum = 0;
      for (const std::uint32_t count : stage_layers(layers, stages)) sum += count;
      ASSERT_EQ(sum, layers) << stages;
    }
  }
}

TEST(Parallel, OneDeviceIsThePlanWithoutAny) {
  const PlanInput input = input_of(llama3_70b());
  const CapacityPlan whole = *plan_capacity(input);
  const ParallelPlan plan = plan_of(input, {});
  ASSERT_EQ(plan.ranks.size(), 1u);
  EXPECT_EQ(plan.ranks[0].rank.devices, 1u);
  ASSERT_EQ(plan.ranks[0].plan.lines.size(), whole.lines.size());
  for (std::size_t at = 0; at < whole.lines.size(); ++at)
    EXPECT_EQ(plan.ranks[0].plan.lines[at].bytes, whole.lines[at].bytes) << whole.lines[at].name;
  EXPECT_EQ(plan.ranks[0].plan.total_bytes, whole.total_bytes);
}

TEST(Parallel, WhatIsCutAddsUpToTheModelAndItsNorms) {
  const PlanInput input = input_of(llama3_70b());
  const CapacityPlan whole = *plan_capacity(input);
  const std::uint64_t norms = 2 * artifact::count_parameters(input.shape)->norms;
  for (const std::uint32_t tensor : {2u, 4u, 8u}) {
    for (const std::uint32_t pipeline : {1u, 3u, 8u}) {
      const ParallelPlan plan = plan_of(input, {.tensor = tensor, .pipeline = pipeline});
      EXPECT_EQ(plan.ranks.size(), pipeline);
      EXPECT_EQ(sum_of(plan, &CapacityPlan::weights_bytes), whole.weights_bytes + (tensor - 1) * norms)
          << tensor << ' ' << pipeline;
      EXPECT_EQ(sum_of(plan, &CapacityPlan::kv_bytes), whole.kv_bytes) << tensor << ' ' << pipeline;
      EXPECT_EQ(plan.kv_copies, 1u);
      for (const RankPlan& one : plan.ranks) {
        std::uint64_t sum = 0;
        for (const PlanLine& line : one.plan.lines) sum += line.bytes;
        EXPECT_EQ(sum, one.plan.total_bytes);
        EXPECT_LE(one.plan.total_bytes, plan.ranks[plan.worst].plan.total_bytes);
      }
    }
  }
}

TEST(Parallel, BeyondTheKvHeadsADeviceKeepsAsMuch) {
  const PlanInput input = input_of(llama3_70b());
  const std::uint64_t whole = plan_capacity(input)->kv_bytes;
  const ParallelPlan eight = plan_of(input, {.tensor = 8}), sixteen = plan_of(input, {.tensor = 16}),
                     thirty_two = plan_of(input, {.tensor = 32});
  EXPECT_EQ(eight.ranks[0].plan.kv_bytes, whole / 8);
  EXPECT_EQ(sixteen.ranks[0].plan.kv_bytes, whole / 8);
  EXPECT_EQ(thirty_two.ranks[0].plan.kv_bytes, whole / 8);
  EXPECT_EQ(sixteen.kv_copies, 2u);
  EXPECT_EQ(thirty_two.kv_copies, 4u);
  EXPECT_EQ(sum_of(sixteen, &CapacityPlan::kv_bytes), 2 * whole);
}

TEST(Parallel, ALatentLiesOnEveryDevice) {
  ModelShape shape = test::deepseek(60);
  shape.parameters = 236'000'000'000;
  const PlanInput input = input_of(shape);
  const CapacityPlan whole = *plan_capacity(input);
  const ParallelPlan plan = plan_of(input, {.tensor = 8});
  EXPECT_EQ(plan.ranks[0].plan.kv_bytes, whole.kv_bytes);
  EXPECT_EQ(plan.kv_copies, 8u);
  EXPECT_LT(plan.ranks[0].plan.weights_bytes, whole.weights_bytes / 7) << "published weights are cut too";
  EXPECT_GE(8 * plan.ranks[0].plan.weights_bytes, whole.weights_bytes);
}

TEST(Parallel, ReplicasShareRequests) {
  const PlanInput input = input_of(llama3_70b(), 10);
  const CapacityPlan whole = *plan_capacity(input);
  const ParallelPlan plan = plan_of(input, {.data = 4});
  EXPECT_EQ(plan.requests, 3u);
  EXPECT_EQ(plan.ranks[0].rank.devices, 4u);
  EXPECT_EQ(plan.ranks[0].plan.weights_bytes, whole.weights_bytes);
  EXPECT_EQ(plan.ranks[0].plan.kv_bytes, whole.kv_bytes / 10 * 3);
}

// 30 experts over 8 ranks: six have 4, two have 3.
TEST(Parallel, ExpertsAreDealtOut) {
  const PlanInput input = input_of(mixture());
  const artifact::ParameterCount count = *artifact::count_parameters(input.shape);
  const ParallelPlan plan = plan_of(input, {.tensor = 4, .data = 2, .expert = true});
  ASSERT_EQ(plan.ranks.size(), 2u);
  EXPECT_EQ(plan.ranks[0].rank.experts, 4u);
  EXPECT_EQ(plan.ranks[0].rank.devices, 6u);
  EXPECT_EQ(plan.ranks[1].rank.experts, 3u);
  EXPECT_EQ(plan.ranks[1].rank.devices, 2u);
  std::uint64_t experts = 0;
  for (const RankPlan& one : plan.ranks) {
    for (const PlanLine& line : one.plan.lines)
      experts += line.name == "weights.experts" ? one.rank.devices * line.bytes : 0;
  }
  const std::uint64_t router = 6ull * 1024 * 30, shared = 6ull * 3 * 1024 * 512;
  const std::uint64_t routed = count.experts - router - shared;
  EXPECT_EQ(experts, 2 * (routed + 8 * router + 2 * shared)) << "routed once, routers on all, shared once a replica";
  EXPECT_EQ(plan.worst, 0u);
}

TEST(Parallel, ExpertsWithoutThatAreCutByWidth) {
  const PlanInput input = input_of(mixture());
  const artifact::ParameterCount count = *artifact::count_parameters(input.shape);
  const ParallelPlan plan = plan_of(input, {.tensor = 4});
  const std::uint64_t router = 6ull * 1024 * 30;
  EXPECT_EQ(sum_of(plan, &CapacityPlan::weights_bytes), 2 * (count.total + 3 * (count.norms + router)));
}

TEST(Parallel, ATiedTableLiesAtBothEnds) {
  ModelShape shape = llama3_70b();
  shape.tied_head = true;
  shape.parameters = artifact::count_parameters(shape)->total;
  const PlanInput input = input_of(shape);
  const ParallelPlan plan = plan_of(input, {.pipeline = 4});
  EXPECT_EQ(sum_of(plan, &CapacityPlan::weights_bytes),
            2 * (shape.parameters + artifact::count_parameters(shape)->embedding));
}

TEST(Parallel, AStageKeepsItsOwnLayersAtF16) {
  PlanInput input = input_of(llama3_70b());
  input.kv.format = {format::KvType::fp8_e4m3, format::KvType::fp8_e4m3};
  input.kv.skip_layers = {0, 79};
  const std::uint64_t whole = plan_capacity(input)->kv_bytes;
  const ParallelPlan plan = plan_of(input, {.pipeline = 4});
  EXPECT_EQ(sum_of(plan, &CapacityPlan::kv_bytes), whole);
  EXPECT_EQ(plan.ranks[0].plan.kv_bytes, whole / 82 * 21) << "19 layers of half the width and one of full";
  EXPECT_EQ(plan.ranks[1].plan.kv_bytes, whole / 82 * 20);
}

TEST(Parallel, CountsThatDoNotDivideAreRefusedWithBoth) {
  const ModelShape shape = llama3_70b();
  EXPECT_EQ(refused(shape, {.tensor = 3}),
            "tensor-parallel-size 3 does not divide the 64 query heads; valid: 1, 2, 4, 8, 16, 32, 64");
  EXPECT_THAT(refused(test::plain(4, 64, 12, 3, 16), {.tensor = 2}),
              testing::AllOf(HasSubstr(" 2 "), HasSubstr("3 KV heads")));
  EXPECT_THAT(refused(test::plain(4, 64, 12, 3, 16), {.tensor = 4}),
              testing::AllOf(HasSubstr(" 4 "), HasSubstr("3 KV heads")));
  EXPECT_EQ(refused(test::plain(4, 64, 12, 3, 16), {.tensor = 6}), "fits");
  EXPECT_THAT(refused(shape, {.pipeline = 81}), testing::AllOf(HasSubstr("81"), HasSubstr("80 layers")));
  EXPECT_THAT(refused(shape, {.tensor = 0}), HasSubstr("tensor-parallel-size is 0"));
  EXPECT_THAT(refused(shape, {.data = 1025}), HasSubstr("data-parallel-size is 1025"));
  EXPECT_THAT(refused(shape, {.expert = true}), HasSubstr("no layer of"));
  EXPECT_THAT(refused(mixture(), {.tensor = 4, .data = 8, .expert = true}),
              testing::AllOf(HasSubstr("32 ranks"), HasSubstr("30 experts")));
}

TEST(Parallel, MemoryIsOfEachDevice) {
  const PlanInput input = input_of(llama3_70b());
  const ParallelLayout layout{.tensor = 4};
  const std::uint64_t memory = 80'000'000'000;
  EXPECT_EQ(*most_requests(input, memory), 0u) << "140 GB of weights";
  PlanInput asked = input;
  asked.requests = *most_requests(input, layout, memory);
  ASSERT_GT(asked.requests, 100u);
  EXPECT_LE(plan_of(asked, layout).ranks[0].plan.total_bytes, memory);
  ++asked.requests;
  EXPECT_GT(plan_of(asked, layout).ranks[0].plan.total_bytes, memory);
  EXPECT_GT(*longest_length(input, layout, memory), 50'000u);
}

}  // namespace
}  // namespace kvasir::plan
