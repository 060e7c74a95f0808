// The plan's sums, its answers about a memory, and that it is what an engine allocates.
#include "plan/capacity_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/weights.hpp"
#include "tests/engine/tiny_engine.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using testing::HasSubstr;

PlanInput input_of(const artifact::ModelShape& shape, std::uint64_t requests, std::uint64_t length) {
  PlanInput input;
  input.shape = shape;
  input.geometry = engine_geometry(shape);
  input.requests = requests;
  input.length = length;
  return input;
}

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
  EXPECT_THAT(refused(1'000'000, 2'000'000'000), HasSubstr("more than 64 bits hold"));
  EXPECT_THAT(refused(100'000, 2'000'000), HasSubstr("blocks of one cache group"));
  EXPECT_EQ(refused(1, 2'147'483'647), "planned");
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
