// The plan beside the process: what the program holds once its cache is full, less what it held before the weights came.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;

constexpr double kTolerance = 0.02;   // of the plan's total: pages, stacks of threads, the allocator's own

struct Case {
  std::string model;
  std::string prompt;
  std::string length;   // tokens; the prompt and the answer fill it, and a step is full once
  std::string kv_cache_dtype = "f16";
};

void expect_planned(const Case& c) {
  const std::vector<std::string> options = {"--threads", "2", "--max-num-batched-tokens", "256", "--kv-cache-dtype", c.kv_cache_dtype, "--json"};
  std::vector<std::string> plan = {"plan", c.model, "--length", c.length};
  plan.insert(plan.end(), options.begin(), options.end());
  std::vector<std::string> run = {"run", c.model, "--max-model-len", c.length, "--no-chat-template", "--prompt", c.prompt, "--ignore-eos"};
  run.insert(run.end(), options.begin(), options.end());
  const ProgramRun planned = run_program(plan), ran = run_program(run);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto total = json::parse(planned.out)["total_bytes"].get<double>();
  const json answer = json::parse(ran.out);
  ASSERT_EQ(std::to_string(answer["usage"]["total_tokens"].get<int>()), c.length) << "the cache is full";
  const json& memory = answer["memory"];
  const double held = memory["resident_bytes"].get<double>() - memory["runtime_bytes"].get<double>();
  EXPECT_NEAR(held / total, 1, kTolerance) << c.model << ": " << held << " B held, " << total << " B planned\n" << memory.dump(1);
}

// Large enough that 2 % are more than a few pages.
TinyModelSpec small(TinyModelSpec spec) {
  spec.width = 256;
  spec.head_dim = 64;
  spec.layers = 8;
  spec.feed_forward = 1024;
  spec.vocabulary = 8192;
  return spec;
}

class PlanMemory : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  }
};

TEST_F(PlanMemory, OfTinyModelsIsWhatTheProcessHolds) {
  const struct {
    const char* name;
    TinyModelSpec spec;
    const char* type;
  } cases[] = {{"mha", TinyModelSpec::mha(), "f16"}, {"gqa", TinyModelSpec::gqa(), "bf16"}, {"mqa", TinyModelSpec::mqa(), "f32"}};
  for (const auto& c : cases) {
    const std::string path = scratch_path(std::string("memory-") + c.name + ".gguf");
    write_tiny_model(small(c.spec), path);
    expect_planned({path, std::string(1200, 'x'), "1280", c.type});
  }
}

TEST_F(PlanMemory, OfTheDefaultModelIsWhatTheProcessHolds) {
  const std::string path = KVASIR_SOURCE_DIR "/models/SmolLM2-135M-Instruct-Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  std::string prompt;
  for (int i = 0; i < 500; ++i) prompt += " word";
  expect_planned({path, prompt, "512"});
}

}  // namespace
}  // namespace kvasir::test
