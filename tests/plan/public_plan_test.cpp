// The planner as a library: the public header alone, errors as values.
#include "kvasir/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace kvasir::api {
namespace {

using testing::HasSubstr;

PlanAnswer answered(const PlanRequest& request) {
  const auto outcome = plan_memory(request);
  if (const auto* error = std::get_if<PlanError>(&outcome)) ADD_FAILURE() << error->message;
  return std::holds_alternative<PlanAnswer>(outcome) ? std::get<PlanAnswer>(outcome) : PlanAnswer{};
}

TEST(PublicPlan, TellsWhatTheProgramTells) {
  PlanRequest request;
  request.model = "llama-3.1-70b";
  request.requests = 32;
  request.length = 8192;
  request.kv_cache_dtype = "bf16";
  const PlanAnswer plan = answered(request);
  EXPECT_EQ(plan.kv_bytes, 80ull << 30);
  EXPECT_EQ(plan.kv_bytes_per_token, 327'680u);
  EXPECT_FALSE(plan.fit.has_value());
  std::uint64_t sum = 0;
  for (const PlanLine& line : plan.lines) sum += line.bytes;
  EXPECT_EQ(sum, plan.total_bytes);

  request.memory = plan.total_bytes;
  const PlanAnswer fitted = answered(request);
  EXPECT_TRUE(fitted.fit->fits);
  EXPECT_EQ(fitted.fit->max_sequences, 32u);
  EXPECT_EQ(fitted.fit->longest_length, 8192u);
  --request.memory;
  EXPECT_FALSE(answered(request).fit->fits);
  EXPECT_EQ(answered(request).fit->max_sequences, 31u);
}

TEST(PublicPlan, ReadsAConfigurationAndOverrides) {
  PlanRequest request;
  request.model = KVASIR_SOURCE_DIR "/tests/data/configs/llama-3.1-8b.json";
  request.length = 1024;
  EXPECT_EQ(answered(request).kv_bytes_per_token, 131'072u);
  request.set = {"kv_heads=32"};
  EXPECT_EQ(answered(request).kv_bytes_per_token, 524'288u);
  request.kv_cache_dtype = "f16/int8";
  request.set.clear();
  EXPECT_EQ(answered(request).kv_bytes_per_token, 99'328u);
  request.length = 200'000;
  EXPECT_THAT(answered(request).warnings, testing::Contains(HasSubstr("beyond the 131072 tokens")));
}

TEST(PublicPlan, WhatIsWrongComesBackAsAValue) {
  const struct {
    const char* what;
    PlanRequest request;
    PlanErrorKind kind;
    const char* message;
  } cases[] = {
      {"name", {.model = "lama-3-8b"}, PlanErrorKind::bad_input, "'Llama-3-8B'"},
      {"path", {.model = "./nothing.gguf"}, PlanErrorKind::bad_input, "'./nothing.gguf' does not exist"},
      {"type", {.model = "llama-3-8b", .kv_cache_dtype = "int9"}, PlanErrorKind::usage, "kv_cache_dtype is 'int9', valid: f32"},
      {"requests", {.model = "llama-3-8b", .requests = 0}, PlanErrorKind::usage, "requests is 0, valid: 1 to 1048576"},
      {"length", {.model = "llama-3-8b", .length = 1ull << 31}, PlanErrorKind::usage, "length is 2147483648, valid: 1 to 2147483647"},
      {"block", {.model = "llama-3-8b", .block_size = 17}, PlanErrorKind::bad_input, "17"},
      {"threads", {.model = "llama-3-8b", .threads = 0}, PlanErrorKind::usage, "threads is 0, valid: 1 to 1024"},
      {"set", {.model = "llama-3-8b", .set = {"kv_haeds=8"}}, PlanErrorKind::bad_input, "kv_heads"},
  };
  for (const auto& one : cases) {
    const auto outcome = plan_memory(one.request);
    ASSERT_TRUE(std::holds_alternative<PlanError>(outcome)) << one.what;
    EXPECT_EQ(std::get<PlanError>(outcome).kind, one.kind) << one.what;
    EXPECT_THAT(std::get<PlanError>(outcome).message, HasSubstr(one.message)) << one.what;
  }
}

// A file is what its content says, whatever its name.
TEST(PublicPlan, AConfigurationNeedsNoSuffix) {
  const std::string path = testing::TempDir() + "kvasir-config-without-suffix";
  std::ofstream(path) << "\n  " << std::ifstream(KVASIR_SOURCE_DIR "/tests/data/configs/llama-3.1-8b.json").rdbuf();
  EXPECT_EQ(answered({.model = path, .length = 10}).kv_bytes_per_token, 131'072u);
  std::ofstream(path) << "GGUF";
  const auto outcome = plan_memory({.model = path});
  ASSERT_TRUE(std::holds_alternative<PlanError>(outcome));
  EXPECT_THAT(std::get<PlanError>(outcome).message, HasSubstr(path));
}

std::string text_of(const std::string& path) {
  std::ifstream file(std::string(KVASIR_SOURCE_DIR "/") + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(PublicPlan, TheDocsShowTheExampleThatRuns) {
  const std::string docs = text_of("docs/capacity.md"), example = text_of("examples/plan.cpp"), fence = "```cpp\n";
  const std::size_t begin = docs.find(fence);
  ASSERT_NE(begin, std::string::npos);
  std::istringstream lines(docs.substr(begin + fence.size(), docs.find("```", begin + fence.size()) - begin - fence.size()));
  int shown = 0;
  for (std::string line; std::getline(lines, line); ++shown) EXPECT_THAT(example, HasSubstr("  " + line + "\n"));
  EXPECT_GE(shown, 3);
}

}  // namespace
}  // namespace kvasir::api
