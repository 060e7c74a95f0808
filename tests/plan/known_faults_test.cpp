// Known faults of other planners: numbers are those of the project's collection of public reports (section f).
// B43 is about a server's counters: tests/server/app_known_faults_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/gguf_shape.hpp"
#include "plan/capacity_plan.hpp"
#include "store/footprint.hpp"
#include "tests/support/gguf_writer.hpp"

namespace kvasir::plan {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<std::pair<std::string, std::uint32_t>>;

constexpr std::uint64_t k8K = 8192, k128K = 131'072;

// A header of 12 layers, 1,024 wide, 16 query heads, and what `numbers` adds or replaces; kv_heads: one a layer, none = absent.
Result<artifact::ModelShape> read(const std::string& architecture, const Numbers& numbers, const std::vector<std::uint32_t>& kv_heads = {}) {
  test::GgufWriter writer;
  writer.value<std::string_view>("general.architecture", architecture);
  Numbers all = {{"block_count", 12}, {"embedding_length", 1024}, {"context_length", 131'072}, {"feed_forward_length", 4096},
                 {"attention.head_count", 16}, {"vocab_size", 1000}};
  for (const auto& [key, value] : numbers) {
    const auto at = std::find_if(all.begin(), all.end(), [&key = key](const auto& entry) { return entry.first == key; });
    if (at == all.end()) all.emplace_back(key, value);
    else at->second = value;
  }
  for (const auto& [key, value] : all) writer.value(architecture + "." + key, value);
  if (!kv_heads.empty()) writer.array(architecture + ".attention.head_count_kv", kv_heads);
  const std::vector<std::byte> bytes = writer.bytes();
  const auto file = artifact::GgufFile::parse(bytes, "test.gguf");
  if (!file.ok()) return file.error();
  return artifact::shape_of(*file);
}

CapacityPlan planned(const artifact::ModelShape& shape, std::uint64_t length) {
  PlanInput input;
  input.shape = shape;
  input.geometry = engine_geometry(shape);
  input.length = length;
  auto plan = plan_capacity(input);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? std::move(plan).value() : CapacityPlan{};
}

// B44: KV heads given per layer; only the first entry is read, and [0, 4, 0, 4] is zero bytes at any context.
TEST(KnownFaults, B44KvHeadsPerLayerAddUp) {
  const Numbers dims = {{"block_count", 4}, {"attention.key_length", 64}, {"attention.value_length", 64}};
  const artifact::ModelShape mixed = read("llama", dims, {0, 4, 0, 4}).value();
  constexpr std::uint64_t kTokenBytes = (0 + 4 + 0 + 4) * (64 + 64) * 2;
  EXPECT_EQ(planned(mixed, 4096).kv_payload_bytes, 4096 * kTokenBytes);
  EXPECT_EQ(planned(mixed, 32'768).kv_payload_bytes, 32'768 * kTokenBytes) << "linear in the context";
  EXPECT_EQ(planned(mixed, 32'768).kv_bytes, 32'768 * kTokenBytes);

  Numbers scalar = dims;
  scalar.emplace_back("attention.head_count_kv", 4);
  EXPECT_EQ(planned(read("llama", scalar).value(), 4096).kv_bytes, planned(read("llama", dims, {4, 4, 4, 4}).value(), 4096).kv_bytes);
  EXPECT_EQ(planned(read("llama", dims).value(), 4096).kv_bytes, 4 * 4096ull * 16 * (64 + 64) * 2) << "absent: as many as query heads";
  EXPECT_THAT(read("llama", dims, {0, 4, 0}).error().message, HasSubstr("has 3 entries; 4 are valid"));
  EXPECT_FALSE(read("llama", dims, {0, 0, 0, 0}).ok()) << "a model that keeps nothing";
}

// B46: one formula for all models. Rows by hand, of a sequence of so many tokens.
struct Family {
  const char* name;
  const char* architecture;
  Numbers numbers;
  std::function<std::uint64_t(std::uint64_t tokens)> row_bytes;
};

std::vector<Family> families() {
  constexpr std::uint64_t kF16 = 2;
  return {
      {"grouped heads", "llama", {{"attention.head_count_kv", 4}}, [](std::uint64_t n) { return 12 * n * 4 * (64 + 64) * kF16; }},
      {"explicit widths", "llama", {{"attention.head_count_kv", 4}, {"attention.key_length", 128}, {"attention.value_length", 128}},
       [](std::uint64_t n) { return 12 * n * 4 * (128 + 128) * kF16; }},
      {"five windows to one", "gemma3", {{"attention.head_count_kv", 4}, {"attention.key_length", 256}, {"attention.value_length", 256},
                                         {"attention.sliding_window", 1024}},
       [](std::uint64_t n) { return (10 * std::min<std::uint64_t>(n, 1024) + 2 * n) * 4 * (256 + 256) * kF16; }},
      {"latents", "deepseek2", {{"attention.kv_lora_rank", 512}, {"rope.dimension_count", 64}, {"attention.q_lora_rank", 1536},
                                {"attention.key_length", 192}, {"attention.value_length", 128}},
       [](std::uint64_t n) { return 12 * n * (512 + 64) * kF16; }},
      {"one layer in four", "qwen3next", {{"attention.head_count_kv", 2}, {"attention.key_length", 256}, {"attention.value_length", 256},
                                         {"ssm.inner_size", 1024}, {"ssm.state_size", 128}, {"ssm.conv_kernel", 4}, {"ssm.group_count", 4}},
       [](std::uint64_t n) { return 3 * n * 2 * (256 + 256) * kF16; }},
  };
}

TEST(KnownFaults, B46EachFamilyByItsOwnRows) {
  for (const Family& family : families()) {
    const auto shape = read(family.architecture, family.numbers);
    ASSERT_TRUE(shape.ok()) << family.name << ": " << shape.error().message;
    for (const std::uint64_t length : {std::uint64_t{500}, k8K, k128K}) {
      const CapacityPlan plan = planned(*shape, length);
      EXPECT_EQ(plan.kv_payload_bytes, family.row_bytes(length)) << family.name << " of " << length;
      EXPECT_GE(plan.kv_bytes, plan.kv_payload_bytes) << family.name << ": never below";
      std::uint64_t edges = 0;   // a window may begin and end within a block
      for (const PlannedGroup& group : plan.kv.groups) edges += 2 * group.layout.block_bytes();
      EXPECT_LE(plan.kv_bytes, plan.kv_payload_bytes + edges) << family.name;
    }
  }
}

// Where an engine here runs the family: its own allocation, to the byte.
TEST(KnownFaults, B46IsTheEnginesOwnAllocation) {
  for (const Family& family : families()) {
    if (std::string(family.architecture) != "llama") continue;
    const artifact::ModelShape shape = read(family.architecture, family.numbers).value();
    const artifact::ModelGeometry geometry = engine_geometry(shape);
    for (const std::uint64_t length : {std::uint64_t{500}, k8K, k128K}) {
      const auto allocated = store::capacity_for_rows(geometry.kv_geometry({}, 32), length);
      const CapacityPlan plan = planned(shape, length);
      const auto slack = std::find_if(plan.lines.begin(), plan.lines.end(), [](const PlanLine& line) { return line.name == "kv.slack"; });
      EXPECT_EQ(plan.kv_bytes + slack->bytes, *allocated) << family.name << " of " << length;
    }
  }
}

// Kin: the compute buffer is forgotten.
TEST(KnownFaults, B46BuffersAreInTheTotal) {
  for (const Family& family : families()) {
    const CapacityPlan plan = planned(read(family.architecture, family.numbers).value(), k8K);
    std::uint64_t buffers = 0;
    for (const PlanLine& line : plan.lines) buffers += line.name == "activations" || line.name == "logits" ? line.bytes : 0;
    EXPECT_GT(buffers, 512u * 1024 * 4) << family.name << ": at least a step's rows of the model's width";
    EXPECT_GE(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.state_bytes + buffers);
  }
}

}  // namespace
}  // namespace kvasir::plan
