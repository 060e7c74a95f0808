// Command lines for other engines say what those engines can do.
#include "plan/launch_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Launched {
  PlanInput input;
  CapacityPlan plan;
  std::vector<LaunchCommand> commands;
  const LaunchCommand& of(std::string_view engine) const {
    for (const LaunchCommand& one : commands) {
      if (one.engine == engine) return one;
    }
    ADD_FAILURE() << engine;
    return commands.front();
  }
};

Launched launched(const std::string& model, format::KvFormat format, std::uint32_t block_tokens = 32) {
  Launched out;
  out.input = test::input_of(test::plain(4, 2048, 32, 8, 64), 6, 1000);
  out.input.kv = {format, block_tokens};
  Result<CapacityPlan> plan = plan_capacity(out.input);
  EXPECT_TRUE(plan.ok());
  out.plan = std::move(*plan);
  out.commands = launch_commands({.model = model, .input = out.input, .plan = out.plan});
  return out;
}

using format::KvType;

TEST(LaunchFlags, AServedFormatNeedsNoNote) {
  const Launched f16 = launched("m.gguf", {});
  EXPECT_THAT(f16.of("kvasir").notes, IsEmpty());
  EXPECT_THAT(f16.of("kvasir").command,
              AllOf(HasSubstr("kvasir serve m.gguf"), HasSubstr("--max-num-seqs 6 --max-model-len 1000 --block-size 32"), HasSubstr("--kv-cache-dtype f16"),
                    HasSubstr("--kv-cache-memory " + std::to_string(f16.plan.kv_bytes))));
  EXPECT_THAT(f16.of("vllm").command, AllOf(HasSubstr("--kv-cache-dtype float16"), HasSubstr("--kv-cache-memory-bytes " + std::to_string(f16.plan.kv_bytes))));
  EXPECT_THAT(f16.of("llama.cpp").command, AllOf(HasSubstr("-np 6 -c 6000 "), HasSubstr("-ctk f16 -ctv f16")));
  EXPECT_THAT(f16.of("sglang").command, AllOf(HasSubstr("--page-size 32"), HasSubstr("--max-total-tokens 6144"))) << "whole pages of each sequence";
}

TEST(LaunchFlags, WhatAnEngineHasNotIsNotedNotInvented) {
  const Launched int8 = launched("org/model", {KvType::int8, KvType::int8});
  EXPECT_THAT(int8.of("kvasir").command, Not(HasSubstr("--kv-cache-dtype")));
  EXPECT_THAT(int8.of("kvasir").notes, Contains(HasSubstr("planned only")));
  EXPECT_THAT(int8.of("sglang").command, Not(HasSubstr("--kv-cache-dtype")));
  EXPECT_THAT(int8.of("sglang").notes, Contains("no cache in int8"));
  EXPECT_THAT(int8.of("vllm").command, HasSubstr("int8_per_token_head"));
  EXPECT_THAT(int8.of("llama.cpp").command, HasSubstr("-ctk q8_0 -ctv q8_0"));
  EXPECT_THAT(int8.of("llama.cpp").notes, Contains(HasSubstr("8.5 bits")));
}

TEST(LaunchFlags, ANameOfThePlannersAndFieldsByHandAreNoted) {
  Launched out = launched("m.gguf", {});
  out.commands = launch_commands({.model = "llama-3-8b", .is_name = true, .is_changed = true, .input = out.input, .plan = out.plan});
  for (const char* engine : {"vllm", "sglang"})
    EXPECT_THAT(out.of(engine).notes, AllOf(Contains(HasSubstr("planner's own")), Contains(HasSubstr("set by hand")))) << engine;
  for (const char* engine : {"kvasir", "llama.cpp"})
    EXPECT_THAT(out.of(engine).notes, AllOf(Contains(HasSubstr("serves GGUF files")), Contains(HasSubstr("set by hand")))) << engine;
}

TEST(LaunchFlags, KAndVApartAndOddBlocks) {
  const Launched mixed = launched("m.gguf", {KvType::f16, KvType::int8}, 256);
  EXPECT_THAT(mixed.of("vllm").notes, AllOf(Contains(HasSubstr("f16/int8")), Contains(HasSubstr("blocks of 256"))));
  EXPECT_THAT(mixed.of("vllm").command, Not(HasSubstr("--block-size")));
  EXPECT_THAT(mixed.of("llama.cpp").command, HasSubstr("-ctk f16 -ctv q8_0"));
}

TEST(LaunchFlags, AnEightBitFloatWithoutScalesIsWarnedOf) {
  EXPECT_THAT(launched("m", {KvType::fp8_e4m3, KvType::fp8_e4m3}).of("vllm").notes, Contains(HasSubstr("1.0")));
}

TEST(LaunchFlags, SeveralDevicesAndKeptLayersAreTold) {
  Launched whole = launched("m", {KvType::fp8_e5m2, KvType::fp8_e5m2});
  whole.input.kv.skip_layers = {0, 3};
  const Result<CapacityPlan> plan = plan_capacity(whole.input);
  const Result<ParallelPlan> parallel = plan_parallel(whole.input, {.tensor = 4, .pipeline = 2});
  ASSERT_TRUE(plan.ok() && parallel.ok());
  whole.commands = launch_commands({.model = "m", .input = whole.input, .plan = *plan, .parallel = &*parallel});
  const std::uint64_t worst = parallel->ranks[parallel->worst].plan.kv_bytes;
  EXPECT_LT(worst, plan->kv_bytes);
  EXPECT_THAT(whole.of("vllm").command, AllOf(HasSubstr("--tensor-parallel-size 4 --pipeline-parallel-size 2"), HasSubstr("--kv-cache-dtype-skip-layers 0 3 "),
                                              HasSubstr("--kv-cache-memory-bytes " + std::to_string(worst) + " ")));
  EXPECT_THAT(whole.of("sglang").command, HasSubstr("--tp-size 4 --pp-size 2"));
  EXPECT_THAT(whole.of("sglang").notes, Contains(HasSubstr("kept at f16")));
  EXPECT_THAT(whole.of("kvasir").notes, Contains(HasSubstr("planned only")));
}

TEST(LaunchFlags, BranchesAndDraftsHaveTheirSlotsAndBytes) {
  Launched branched = launched("m.gguf", {});
  branched.input.branches = {.per_request = 4, .prompt_length = 100, .speculative_tokens = 3};
  const Result<CapacityPlan> plan = plan_capacity(branched.input);
  ASSERT_TRUE(plan.ok());
  branched.commands = launch_commands({.model = "m.gguf", .input = branched.input, .plan = *plan});
  std::uint64_t cache = 0;
  for (const PlanLine& line : plan->lines) cache += line.name.starts_with("kv.") && line.name != "kv.slack" ? line.bytes : 0;
  EXPECT_GT(cache, plan->kv_bytes);
  EXPECT_THAT(branched.of("vllm").command, AllOf(HasSubstr("--max-num-seqs 24 "), HasSubstr("--kv-cache-memory-bytes " + std::to_string(cache))));
  EXPECT_THAT(branched.of("llama.cpp").command, HasSubstr("-np 24 -c 24000 "));
}

TEST(LaunchFlags, NamesAreQuotedForAShell) {
  EXPECT_THAT(launched("my model's $(rm).gguf", {}).of("kvasir").command, HasSubstr("serve 'my model'\\''s $(rm).gguf' --max"));
}

}  // namespace
}  // namespace kvasir::plan
