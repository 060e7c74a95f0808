// The plan's sums, its answers about a memory, and that it is what an engine allocates.
#include "plan/capacity_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/weights.hpp"
#include "tests/engine/tiny_engine.hpp"
#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using test::input_of;

CapacityPlan plan_of(const PlanInput& input) {
  Result<CapacityPlan> plan = plan_capacity(input);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : CapacityPlan{};
}

std::uint64_t bytes_of(const CapacityPlan& plan, std::string_view name) {
  std::uint64_t sum = 0;
  for (const PlanLine& line : plan.lines) sum += line.name.starts_with(name) ? line.bytes : 0;
  return sum;
}

TEST(CapacityPlan, TheTotalIsTheSumOfItsLines) {
  artifact::ModelShape shape = test::windowed(26, 5, 512);
  shape.layers[0] = {.memory = artifact::Memory::recurrent, .state_elements = 1 << 20, .state_bytes = 4};
  shape.parameters = 1'000'000'000;
  PlanInput input = input_of(shape, 7, 5000);
  input.weights = *shape_weights(shape);
  const CapacityPlan plan = plan_of(input);
  std::uint64_t sum = 0;
  for (const PlanLine& line : plan.lines) {
    EXPECT_FALSE(line.how.empty()) << line.name;
    EXPECT_FALSE(line.field.empty()) << line.name;
    sum += line.bytes;
  }
  EXPECT_EQ(sum, plan.total_bytes);
  EXPECT_EQ(bytes_of(plan, "weights"), plan.weights_bytes);
  EXPECT_EQ(plan.weights_bytes, 2'000'000'000u);
  EXPECT_EQ(plan.state_bytes, 7u * 4 << 20);
  EXPECT_EQ(bytes_of(plan, "kv.full") + bytes_of(plan, "kv.window"), plan.kv_bytes);
  EXPECT_LE(plan.kv_payload_bytes, plan.kv_bytes);
  EXPECT_LT(bytes_of(plan, "kv.slack"), plan.kv_bytes / 50);
}

TEST(CapacityPlan, RoundsEachSequenceToItsBlocks) {
  const CapacityPlan plan = plan_of(input_of(test::llama2_7b(), 10, 33));
  EXPECT_EQ(plan.kv_payload_bytes, 10u * 33 * (512 << 10));
  EXPECT_EQ(plan.kv_bytes, 10u * 64 * (512 << 10));
}

TEST(CapacityPlan, AnswersAreTheEdgesOfWhatFits) {
  PlanInput input = input_of(test::llama2_7b(), 4, 1000);
  const std::uint64_t memory = 40ull << 30;
  const std::uint64_t requests = *most_requests(input, memory);
  ASSERT_GT(requests, 10u);
  input.requests = requests;
  EXPECT_LE(plan_of(input).total_bytes, memory);
  input.requests = requests + 1;
  EXPECT_GT(plan_of(input).total_bytes, memory);

  input.requests = 4;
  const std::uint64_t length = *longest_length(input, memory);
  input.length = length;
  EXPECT_LE(plan_of(input).total_bytes, memory);
  input.length = length + 1;
  EXPECT_GT(plan_of(input).total_bytes, memory);
}

TEST(CapacityPlan, NothingFitsInNothing) {
  const PlanInput input = input_of(test::llama2_7b(), 1, 1000);
  EXPECT_EQ(*most_requests(input, 1 << 20), 0u);
  EXPECT_EQ(*longest_length(input, 1 << 20), 0u);
}

TEST(CapacityPlan, SizesBeyondReasonAreRefusedByName) {
  const auto refused = [](std::uint64_t requests, std::uint64_t length) {
    const Result<CapacityPlan> plan = plan_capacity(input_of(test::llama2_7b(), requests, length));
    return plan.ok() ? std::string("planned") : plan.error().message;
  };
  EXPECT_EQ(refused(0, 1), "requests is 0, valid: 1 to 1048576");
  EXPECT_EQ(refused(1, 0), "length is 0, valid: 1 to 2147483647");
  EXPECT_EQ(refused(1, 1'000'000'000'000), "length is 1000000000000, valid: 1 to 2147483647");
  EXPECT_THAT(refused(1'000'000, 2'000'000'000), AllOf(HasSubstr("requests 1000000 x length 2000000000: "), HasSubstr("more than 64 bits hold")));
  EXPECT_THAT(refused(100'000, 2'000'000), HasSubstr("blocks of one cache group"));
  EXPECT_EQ(refused(1, 2'147'483'647), "planned");
}

TEST(CapacityPlan, WhatFitsIsNotSaidWithoutTheWeights) {
  PlanInput input = input_of(test::llama2_7b(), 1, 1000);
  const Status unknown = check_weights_known(input);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("--set parameters=70B"));
  input.weights.push_back({"weights", 1, "", ""});
  EXPECT_TRUE(check_weights_known(input).ok());
}

TEST(CapacityPlan, TheCacheIsAllThatSequencesStore) {
  PlanInput input = input_of(test::llama2_7b(), 3, 1000);
  input.branches = {4, 500, 8};
  const CapacityPlan plan = plan_of(input);
  std::uint64_t sum = 0;
  for (const PlanLine& line : plan.lines) {
    if (line.name == "kv.full" || line.name == "kv.branches" || line.name == "kv.speculative") sum += line.bytes;
  }
  EXPECT_GT(sum, plan.kv_bytes);
  EXPECT_EQ(plan.cache_bytes, sum);
}

TEST(CapacityPlan, PartsOfACacheLineAddUp) {
  PlanInput input = input_of(test::llama2_7b(), 3, 33);
  input.kv.format = {format::KvType::int8, format::KvType::f16};
  const CapacityPlan plan = plan_of(input);
  const PlanLine& line = plan.lines.front();
  ASSERT_EQ(line.name, "kv.full");
  ASSERT_EQ(line.parts.size(), 3u);
  EXPECT_EQ(line.parts[0].name, "values");
  EXPECT_EQ(line.parts[0].bytes, 3u * 33 * 32 * 32 * (128 + 256));
  EXPECT_EQ(line.parts[1].name, "scales");
  EXPECT_EQ(line.parts[1].bytes, 3u * 33 * 32 * 32 * 4) << "of K alone";
  EXPECT_EQ(line.parts[0].bytes + line.parts[1].bytes, plan.kv_payload_bytes);
  EXPECT_EQ(line.parts[0].bytes + line.parts[1].bytes + line.parts[2].bytes, line.bytes);
}

// Eight samples of a prompt of 100 tokens in blocks of 32: three full blocks once, then each its own.
TEST(CapacityPlan, ALatentsRopePartIsToldApart) {
  artifact::ModelShape shape = test::deepseek(61);
  shape.rope_dim = 64;
  for (const format::KvType type : {format::KvType::bf16, format::KvType::int4}) {
    PlanInput input = input_of(shape, 3, 100);
    input.kv.format = {type, type};
    const CapacityPlan plan = plan_of(input);
    const PlanLine& line = *std::ranges::find(plan.lines, "kv.latent", &PlanLine::name);
    ASSERT_EQ(line.parts[0].name, "latent");
    ASSERT_EQ(line.parts[1].name, "rope");
    EXPECT_EQ(line.parts[1].bytes, 3ull * 100 * 61 * 64 * format::element_bits(type) / 8);
    EXPECT_EQ(line.parts[0].bytes, 8 * line.parts[1].bytes) << "512 to 64";
    std::uint64_t sum = 0;
    for (const PlanPart& part : line.parts) sum += part.bytes;
    EXPECT_EQ(sum, line.bytes);
  }
}

TEST(CapacityPlan, BranchesShareThePromptsFullBlocks) {
  PlanInput input = input_of(test::llama2_7b(), 2, 200);
  const std::uint64_t block = 32ull * (512 << 10), alone = plan_of(input).total_bytes;
  input.branches = {.per_request = 8, .prompt_length = 100};
  const CapacityPlan plan = plan_of(input);
  EXPECT_EQ(plan.kv_bytes, 2 * 7 * block) << "the first of each";
  EXPECT_EQ(bytes_of(plan, "kv.branches"), 2ull * 7 * (7 - 3) * block) << "the begun block is copied";
  EXPECT_GT(plan.total_bytes, alone + bytes_of(plan, "kv.branches")) << "and tables for 16 sequences";
  input.branches.prompt_length = 0;
  EXPECT_EQ(bytes_of(plan_of(input), "kv.branches"), 2ull * 7 * 7 * block);
  input.branches = {.per_request = 2, .prompt_length = 201};
  EXPECT_FALSE(plan_capacity(input).ok());
}

TEST(CapacityPlan, ABranchOfAWindowKeepsNoMoreThanTheWindow) {
  PlanInput input = input_of(test::windowed(2, 1, 64), 1, 10'000);
  input.branches = {.per_request = 2, .prompt_length = 5000};
  const CapacityPlan plan = plan_of(input);
  const std::uint64_t row = 2 * 256 * 2;   // a layer's
  EXPECT_EQ(bytes_of(plan, "kv.branches"), (3 + (313 - 156)) * 32ull * row) << "64 rows in three blocks; 313 blocks but for 156 of the prompt";
  input.branches.prompt_length = 9990;
  EXPECT_EQ(bytes_of(plan_of(input), "kv.branches"), 2 * 32ull * row * 1) << "both have one block beyond 312 full ones";
}

TEST(CapacityPlan, ADraftTakesBlocksWhereItCrossesThem) {
  PlanInput input = input_of(test::llama2_7b(), 5, 64);
  const std::uint64_t block = 32ull * (512 << 10);
  input.branches.speculative_tokens = 4;
  EXPECT_EQ(bytes_of(plan_of(input), "kv.speculative"), 5 * block);
  input.length = 60;
  EXPECT_EQ(bytes_of(plan_of(input), "kv.speculative"), 0u) << "they fit in the last block";
  input.branches = {.per_request = 3, .speculative_tokens = 5};
  EXPECT_EQ(bytes_of(plan_of(input), "kv.speculative"), 15 * block);
}

TEST(CapacityPlan, FixedLinesCountWhateverTheRequests) {
  PlanInput input = input_of(test::llama2_7b(), 1, 64);
  const std::uint64_t without = plan_of(input).total_bytes;
  input.fixed.push_back({"reserve", 12'345, "asked for", "reserve"});
  EXPECT_EQ(plan_of(input).total_bytes, without + 12'345);
}

TEST(CapacityPlan, LayersKeptAtF16AreAGroupOfTheirOwn) {
  PlanInput input = input_of(test::llama2_7b(), 1, 64);
  input.kv.format = {format::KvType::fp8_e4m3, format::KvType::fp8_e4m3};
  const std::uint64_t all = plan_of(input).kv_bytes;
  input.kv.skip_layers = {0, 31};
  EXPECT_EQ(plan_of(input).kv_bytes, all / 32 * 34);
  input.kv.skip_layers = {32};
  const Result<CapacityPlan> plan = plan_capacity(input);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, testing::AllOf(HasSubstr("layer 32"), HasSubstr("0 to 31")));
  input = input_of(test::windowed(6, 5, 512), 1, 10'000);
  input.kv.format = {format::KvType::int4, format::KvType::int4};
  input.kv.skip_windows = true;
  const CapacityPlan windows = plan_of(input);
  EXPECT_EQ(windows.kv.groups[0].group.format.k, format::KvType::f16);
  EXPECT_EQ(windows.kv.groups[1].group.format.k, format::KvType::int4);
}

// Line by line what an engine says it computed, which it checks against what it allocated.
TEST(CapacityPlan, IsWhatAnEngineAllocates) {
  const auto model = engine::test::shared_gqa();
  const artifact::ModelGeometry& geometry = model->geometry();
  for (const std::uint32_t sequences : {1u, 3u, 8u}) {
    for (const std::uint32_t length : {1u, 17u, 64u}) {
      PlanInput input;
      input.shape = test::plain(geometry.layers, geometry.width, geometry.heads, geometry.kv_heads[0], geometry.head_dim);
      input.geometry = geometry;
      input.requests = sequences;
      input.length = length;
      input.kv.block_tokens = 16;
      const CapacityPlan plan = plan_of(input);

      engine::PoolConfig config;
      config.block_tokens = 16;
      config.kv_cache_bytes = plan.kv_bytes + bytes_of(plan, "kv.slack");
      config.max_sequences = sequences;
      config.max_model_len = length;
      const auto engine = engine::test::make_engine(model, config);
      for (const engine::MemoryLine& line : engine->memory()) {
        std::uint64_t planned = bytes_of(plan, "kv.slack");
        if (line.name == "cache") planned = plan.kv_bytes;
        if (line.name == "workspace") planned = bytes_of(plan, "activations") + bytes_of(plan, "logits") + bytes_of(plan, "sampler");
        if (line.name == "metadata") planned = bytes_of(plan, "metadata");
        if (line.name == "weights") continue;
        EXPECT_EQ(line.computed, planned) << line.name << ' ' << sequences << " x " << length;
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::plan
