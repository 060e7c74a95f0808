// kvasir plan for a machine: what a device's name stands for, several of them, speed, and the warnings with their
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_plan.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// As test::planned, whether it fits or not.
json planned_anyway(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ProgramRun run = run_plan(arguments);
  EXPECT_THAT(run.exit_code, testing::AnyOf(0, 3)) << run.err;
  return json::parse(run.out, nullptr, false);
}

std::uint64_t bytes_of(const json& plan, const std::string& name) {
  std::uint64_t sum = 0;
  for (const json& line : plan["lines"]) sum += line["name"] == name ? line["bytes"].get<std::uint64_t>() : 0;
  return sum;
}

TEST(PlanDevice, ItsMemoryIsTheMemory) {
  const json plan = planned_anyway({"llama-3-8b", "--length", "4096", "--device", "a100-80gb"});
  EXPECT_EQ(plan["device"]["title"], "NVIDIA A100 80GB SXM");
  EXPECT_EQ(plan["memory_bytes"], 84'974'501'888);
  EXPECT_EQ(plan["total_bytes"].get<std::uint64_t>() + plan["free_bytes"].get<std::uint64_t>(), 84'974'501'888);
  EXPECT_GT(plan["max_sequences"], 50);
  EXPECT_EQ(planned_anyway({"llama-3-8b", "--length", "4096", "--device", "a100-80gb", "--memory", "40GB"})["memory_bytes"],
            40'000'000'000);
  const json cpu = planned_anyway({"llama-3-8b", "--length", "4096", "--device", "epyc-9654"});
  EXPECT_TRUE(cpu["memory_bytes"].is_null()) << "a CPU's memory is not its own";
  EXPECT_FALSE(cpu["roofline"].is_null());
}

TEST(PlanDevice, AGpuHasARuntimeACpuHasNone) {
  const json gpu = planned_anyway({"llama-3-8b", "--length", "4096", "--device", "h100"});
  std::uint64_t sum = 0;
  int ranges = 0;
  for (const json& line : gpu["lines"]) {
    sum += line["bytes"].get<std::uint64_t>();
    ranges += line.contains("low_bytes") ? 1 : 0;
    if (line.contains("low_bytes")) {
      EXPECT_LT(line["low_bytes"], line["bytes"]);
    }
  }
  EXPECT_EQ(ranges, 2) << "no communicator for one";
  EXPECT_EQ(gpu["total_bytes"], sum);
  EXPECT_EQ(bytes_of(planned_anyway({"llama-3-8b", "--length", "4096", "--device", "mi300x"}), "runtime.context"), 0u)
      << "not CUDA's";
  EXPECT_EQ(bytes_of(planned_anyway({"llama-3-8b", "--length", "4096", "--device", "this"}), "runtime.context"), 0u);
  EXPECT_GT(bytes_of(planned_anyway({"llama-3-8b", "--length", "4096", "--gpu-runtime"}), "runtime.context"), 0u);
}

TEST(PlanDevice, SeveralShareTheModel) {
  const json plan = planned_anyway({"llama-3.1-70b", "--length", "8192", "--requests", "16", "--device", "a100-80gb*4"});
  EXPECT_EQ(plan["parallel"]["tensor"], 4);
  ASSERT_EQ(plan["devices"].size(), 1u);
  EXPECT_EQ(plan["devices"][0]["devices"], 4);
  EXPECT_EQ(plan["devices"][0]["kv_bytes"], plan["kv_bytes"].get<std::uint64_t>() / 4);
  EXPECT_TRUE(plan["fits"]) << "a device's part fits in a device";
  EXPECT_EQ(plan["devices"][0]["total_bytes"].get<std::uint64_t>() + plan["free_bytes"].get<std::uint64_t>(),
            84'974'501'888);
  const json staged =
      planned_anyway({"llama-3.1-70b", "--length", "8192", "--tp", "2", "--pp", "3", "--dp", "2", "--requests", "4"});
  EXPECT_EQ(staged["parallel"]["devices"], 12);
  EXPECT_EQ(staged["devices"].size(), 3u);
  EXPECT_THAT(run_plan({"llama-3.1-70b", "--length", "8192", "--tp", "2", "--pp", "3"}).out, HasSubstr("worst"));
  const json piped = planned_anyway(
      {"llama-3.1-70b", "--length", "8192", "--requests", "24", "--device", "h100*8", "--pp", "2", "--dp", "2"});
  EXPECT_EQ(piped["parallel"]["tensor"], 2);
  EXPECT_EQ(piped["roofline"]["batch"], 6) << "two batches under way in each of two replicas";
  EXPECT_TRUE(planned_anyway({"llama-3.1-70b", "--length", "8192"})["devices"].is_null());
}

TEST(PlanDevice, SpeedIsABoundThatSaysSo) {
  const json plan =
      planned_anyway({"llama-3-8b", "--length", "4096", "--requests", "8", "--device", "h100", "--target-itl", "20"});
  const json& roof = plan["roofline"];
  EXPECT_EQ(roof["decode"]["bound"], "bandwidth");
  EXPECT_NEAR(roof["decode"]["seconds"].get<double>(), roof["decode"]["bytes"].get<double>() / 3.35e12, 1e-9);
  EXPECT_NEAR(roof["tokens_per_second"].get<double>(), 8 * roof["tokens_per_second_stream"].get<double>(), 1e-6);
  EXPECT_EQ(roof["prefill"]["bound"], "operations");
  EXPECT_GT(roof["max_batch"], 8);
  const json half =
      planned_anyway({"llama-3-8b", "--length", "4096", "--requests", "8", "--device", "h100", "--efficiency", "0.5"});
  EXPECT_NEAR(half["roofline"]["decode"]["seconds"].get<double>(), 2 * roof["decode"]["seconds"].get<double>(), 1e-9);
  const json given = planned_anyway({"llama-3-8b", "--length", "4096", "--bandwidth", "20", "--peak", "1"});
  EXPECT_EQ(given["roofline"]["bandwidth"], 20e9);
  EXPECT_TRUE(given["device"].is_null());
  EXPECT_THAT(run_plan({"llama-3-8b", "--length", "4096", "--device", "h100"}).out,
              AllOf(HasSubstr("a bound"), HasSubstr("tokens/s")));
  EXPECT_THAT(run_plan({"llama-3-8b", "--length", "4096", "--device", "this"}).out, HasSubstr("no bandwidth is known"));
}

TEST(PlanDevice, WhatIsAskedForTakesALine) {
  const json plan = planned_anyway({"llama-3-8b", "--length", "1000", "--requests", "2", "--n", "4", "--prompt-length", "800",
                             "--speculative-tokens", "8", "--reserve", "5%", "--memory", "40GB"});
  EXPECT_EQ(bytes_of(plan, "reserve"), 2'000'000'000u);
  EXPECT_EQ(bytes_of(plan, "kv.branches"), 2ull * 3 * 7 * 32 * 131'072) << "25 full blocks of 32 shared of 32";
  EXPECT_GE(bytes_of(plan, "kv.speculative"), 0u);
  EXPECT_EQ(bytes_of(planned_anyway({"llama-3-8b", "--length", "1000", "--reserve", "1GiB"}), "reserve"), 1u << 30);
  const json kept = planned_anyway(
      {"llama-3-8b", "--length", "1024", "--kv-cache-dtype", "fp8_e4m3", "--kv-cache-dtype-skip-layers", "0,30-31"});
  EXPECT_EQ(kept["kv_bytes"], 1024ull * 131'072 / 64 * 35);
  EXPECT_EQ(kept["lines"].size(), planned_anyway({"llama-3-8b", "--length", "1024"})["lines"].size() + 1);
}

TEST(PlanDevice, TheListNamesSources) {
  const ProgramRun run = run_plan({"--list-devices"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("h200"), HasSubstr("4800"), HasSubstr("datasheet, 2024"), HasSubstr("this")));
  const json list = json::parse(run_plan({"--list-devices", "--json"}).out, nullptr, false);
  const json h200 = *std::find_if(list.begin(), list.end(), [](const json& one) { return one["name"] == "h200"; });
  json of_plan = planned_anyway({"llama-3-8b", "--length", "10", "--device", "h200"})["device"];
  EXPECT_EQ(of_plan["count"], 1);
  of_plan.erase("count");
  EXPECT_EQ(h200, of_plan);
}

TEST(PlanDevice, WhatIsWrongIsNamed) {
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {{"--device", "h10"}, 4, {"'h10'", "'h100'"}},
      {{"--device", "h100*0"}, 4, {"h100*0", "1 to 4096"}},
      {{"--device", "h100*8", "--tp", "4"}, 2, {"8 devices", "4 x 1 x 1"}},
      {{"--device", "h100*8", "--pp", "3"}, 2, {"8 devices", "3"}},
      {{"--tp", "3"}, 4, {"tensor-parallel-size 3", "32 query heads"}},
      {{"--tp", "0"}, 2, {"--tensor-parallel-size", "0"}},
      {{"--pp", "33"}, 4, {"33", "32 layers"}},
      {{"--enable-expert-parallel"}, 4, {"enable-expert-parallel", "experts"}},
      {{"--efficiency", "1.5"}, 2, {"--efficiency", "1.5"}},
      {{"--target-itl", "20"}, 2, {"--target-itl", "--bandwidth"}},
      {{"--target-itl", "nan", "--device", "h100"}, 2, {"--target-itl", "nan"}},
      {{"--n", "4"}, 2, {"--n", "--prompt-length"}},
      {{"--prompt-length", "2000"}, 2, {"--prompt-length", "2000", "1000"}},
      {{"--reserve", "5%"}, 2, {"--reserve", "5%", "--memory"}},
      {{"--reserve", "100%", "--memory", "1GiB"}, 2, {"--reserve", "100%"}},
      {{"--reserve", "much"}, 2, {"--reserve", "much"}},
      {{"--kv-cache-dtype-skip-layers", "0,x"}, 2, {"--kv-cache-dtype-skip-layers", "'x'"}},
      {{"--kv-cache-dtype-skip-layers", "4-2"}, 2, {"'4-2'"}},
      {{"--kv-cache-dtype-skip-layers", "32", "--kv-cache-dtype", "int8"}, 4, {"layer 32", "0 to 31"}},
  };
  for (const auto& one : cases) {
    std::vector<std::string> arguments{"llama-3-8b", "--length", "1000"};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const ProgramRun run = run_plan(arguments);
    EXPECT_EQ(run.exit_code, one.code) << one.arguments[0] << ' ' << run.err << run.out;
    EXPECT_EQ(run.out, "");
    for (const std::string& word : one.words) EXPECT_THAT(run.err, HasSubstr(word)) << one.arguments[0];
  }
}

std::string warnings(const std::vector<std::string>& arguments) { return planned_anyway(arguments)["warnings"].dump(); }

TEST(PlanDevice, WarnsOfTheUsualMistakes) {
  EXPECT_THAT(warnings({"llama-3.1-70b", "--length", "8192", "--tp", "16"}),
              AllOf(HasSubstr("beyond the model's 8 KV heads"), HasSubstr("on 2 devices"), HasSubstr("40.0 KiB")));
  EXPECT_THAT(warnings({"llama-2-7b", "--length", "4096"}),
              AllOf(HasSubstr("32 query heads"), HasSubstr("512.0 MiB instead of 2.00 GiB")));
  EXPECT_THAT(warnings({"gemma-3-27b", "--length", "131072"}),
              AllOf(HasSubstr("windows are ignored"), HasSubstr("62.0 GiB instead of 10.4 GiB")));
  EXPECT_THAT(warnings({"llama-3-8b", "--length", "100", "--kv-cache-dtype", "fp8_e4m3"}), HasSubstr("448"));
  EXPECT_THAT(warnings({"llama-2-7b", "--length", "4096", "--requests", "32", "--memory", "24GB"}),
              AllOf(HasSubstr("weights alone"), HasSubstr("fit in 22.4 GiB"), HasSubstr("the 32 asked do not"),
                    HasSubstr("full at a length of")));
  EXPECT_THAT(warnings({"llama-3-8b", "--length", "8192", "--requests", "16", "--device", "h100", "--target-itl", "8"}),
              AllOf(HasSubstr("twice the tokens"), HasSubstr("latency is the limit")));
  EXPECT_THAT(warnings({"llama-3-8b", "--length", "8192", "--device", "l4", "--target-itl", "1000"}),
              HasSubstr("memory is the limit"));
  EXPECT_THAT(warnings({"llama-3-8b", "--length", "8192"}), "[]");
}

}  // namespace
}  // namespace kvasir::test
