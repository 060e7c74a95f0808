// Other choices for the same plan.
#include "plan/what_if.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using testing::HasSubstr;

PlanInput input_of(const artifact::ModelShape& shape) { return test::input_of(shape, 3, 1000); }

std::vector<Alternative> rows_of(const PlanInput& input, const std::vector<Axis>& axes, std::uint64_t memory = 0) {
  Result<std::vector<Alternative>> rows = what_if(input, axes, memory);
  EXPECT_TRUE(rows.ok()) << (rows.ok() ? "" : rows.error().message);
  return rows.ok() ? *rows : std::vector<Alternative>{};
}

const Alternative& row_of(const std::vector<Alternative>& rows, const std::vector<std::string>& choices) {
  const auto found = std::ranges::find(rows, choices, &Alternative::choices);
  EXPECT_NE(found, rows.end()) << testing::PrintToString(choices);
  return found == rows.end() ? rows.front() : *found;
}

// Every row is what the planner says for the changed input.
void expect_planned(const Alternative& row, const PlanInput& changed) {
  const Result<CapacityPlan> plan = plan_capacity(changed);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(row.kv_bytes, plan->kv_bytes);
  EXPECT_EQ(row.total_bytes, plan->total_bytes);
  EXPECT_EQ(row.kv_bytes_per_token, plan->kv_bytes_per_token);
}

TEST(WhatIf, FormatsAreThePlanWithThatFormat) {
  const PlanInput input = input_of(test::plain(4, 2048, 32, 8, 64));
  const std::vector<Alternative> rows = rows_of(input, {Axis::formats});
  EXPECT_EQ(rows.size(), format::kKvTypes.size());
  expect_planned(rows.front(), input);
  EXPECT_EQ(rows.front().choices, std::vector<std::string>{"as planned"});
  PlanInput int8 = input;
  int8.kv.format = {format::KvType::int8, format::KvType::int8};
  expect_planned(row_of(rows, {"int8"}), int8);
  EXPECT_EQ(row_of(rows, {"f32"}).kv_bytes, 2 * rows.front().kv_bytes);
}

TEST(WhatIf, HeadsScaleTheCache) {
  const std::vector<Alternative> rows = rows_of(input_of(test::plain(4, 2048, 32, 8, 64)), {Axis::heads});
  EXPECT_EQ(row_of(rows, {"32 KV heads"}).kv_bytes, 4 * rows.front().kv_bytes);
  EXPECT_EQ(row_of(rows, {"1 KV head"}).kv_bytes * 8, rows.front().kv_bytes);
  EXPECT_EQ(row_of(rows, {"a latent of 288"}).kv_bytes_per_token, 4u * 288 * 2) << "four and a half heads of 64, four layers, f16";
  EXPECT_TRUE(std::ranges::none_of(rows, [](const Alternative& row) { return row.choices.front() == "8 KV heads"; })) << "that is as planned";
}

TEST(WhatIf, BlocksChangeTheRounding) {
  const std::vector<Alternative> rows = rows_of(input_of(test::plain(4, 2048, 32, 8, 64)), {Axis::blocks});
  const std::uint64_t row = 4ull * 8 * 64 * 2 * 2;
  EXPECT_EQ(rows.front().kv_bytes, 3 * 1024 * row);
  EXPECT_EQ(row_of(rows, {"blocks of 16"}).kv_bytes, 3 * 1008 * row);
  EXPECT_EQ(row_of(rows, {"blocks of 256"}).kv_bytes, 3 * 1024 * row);
}

TEST(WhatIf, WindowsBoundTheCache) {
  PlanInput input = input_of(test::windowed(12, 5, 512));
  input.length = 8192;
  const std::vector<Alternative> rows = rows_of(input, {Axis::windows});
  EXPECT_GT(row_of(rows, {"no window"}).kv_bytes, rows.front().kv_bytes);
  EXPECT_EQ(row_of(rows, {"window 4096 everywhere"}).kv_bytes_per_token, 0u);
  EXPECT_LT(row_of(rows, {"window 1024 in 5 of 6 layers"}).kv_bytes, row_of(rows, {"no window"}).kv_bytes);
}

TEST(WhatIf, ChoicesThatChangeNothingAreLeftOut) {
  EXPECT_EQ(rows_of(input_of(test::deepseek(60)), {Axis::windows}).size(), 1u) << "latents have no windows";
  PlanInput windowed = input_of(test::plain(12, 2048, 32, 8, 64));
  for (artifact::LayerShape& layer : windowed.shape.layers) layer.window = 4096;
  for (const Alternative& row : rows_of(windowed, {Axis::windows})) EXPECT_NE(row.choices.front(), "window 4096 everywhere");
}

TEST(WhatIf, AxesMultiply) {
  const PlanInput input = input_of(test::plain(4, 2048, 32, 8, 64));
  const std::vector<Alternative> rows = rows_of(input, {Axis::formats, Axis::blocks}, 1ull << 30);
  EXPECT_EQ(rows.size(), rows_of(input, {Axis::formats}).size() * rows_of(input, {Axis::blocks}).size());
  PlanInput changed = input;
  changed.kv = {{format::KvType::int4, format::KvType::int4}, 128};
  expect_planned(row_of(rows, {"int4", "blocks of 128"}), changed);
  const Result<std::uint64_t> most = most_requests(changed, 1ull << 30);
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(row_of(rows, {"int4", "blocks of 128"}).max_sequences, *most);
}

TEST(WhatIf, NoAxisAndTheSameTwiceAreRefused) {
  const PlanInput input = input_of(test::plain(4, 2048, 32, 8, 64));
  EXPECT_THAT(what_if(input, {}, 0).error().message, HasSubstr("no axis"));
  EXPECT_THAT(what_if(input, {Axis::heads, Axis::heads}, 0).error().message, HasSubstr("heads twice"));
  for (const Axis axis : kAxes) EXPECT_EQ(parse_axis(to_string(axis)), axis);
  EXPECT_EQ(parse_axis("format"), std::nullopt);
}

}  // namespace
}  // namespace kvasir::plan
