// The bar's classes and the page.
#include "plan/plan_picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/plan_input.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanInput input_of(const artifact::ModelShape& shape) {
  PlanInput input = test::input_of(shape, 4, 512);
  input.weights = {{"weights.attention", 1000, "x", "y"}, {"weights.embedding", 500, "x", "y"}};
  return input;
}

TEST(PlanPicture, ClassesAddUpToTheTotal) {
  artifact::ModelShape shape = test::windowed(12, 5, 128);
  shape.layers[0] = {.memory = artifact::Memory::recurrent, .state_elements = 1 << 10, .state_bytes = 4};
  const Result<CapacityPlan> plan = plan_capacity(input_of(shape));
  ASSERT_TRUE(plan.ok());
  std::uint64_t sum = 0;
  for (const report::Segment& segment : segments_of(*plan)) {
    sum += segment.amount;
    if (segment.name == "weights") {
      EXPECT_EQ(segment.amount, 1500u);
    } else if (segment.name == "states") {
      EXPECT_EQ(segment.amount, plan->state_bytes);
    }
  }
  EXPECT_EQ(sum, plan->total_bytes);
}

TEST(PlanPicture, ThePageStandsAlone) {
  const PlanInput input = input_of(test::plain(4, 2048, 32, 8, 64));
  const Result<CapacityPlan> plan = plan_capacity(input);
  ASSERT_TRUE(plan.ok());
  const std::string page = plan_page({"a <model>", "the table", "the rest"}, input, *plan, 1ull << 30);
  for (const char* part : {"<!doctype html>", "a &lt;model&gt;", "the table", "the rest", "Sequences of 512 tokens", "Tokens of each of 4 sequences", ">1.00 GiB<", ">8<", ">1,024<"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* outside : {"<script", "src=", "href=", "url(", "@import"}) EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST(PlanPicture, ThePageEndsItsColumnsAtTheLimits) {
  PlanInput input = input_of(test::plain(4, 2048, 32, 8, 64));
  input.length = kMaxLength;
  const Result<CapacityPlan> plan = plan_capacity(input);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::string page = plan_page({"t", "", ""}, input, *plan, 0);
  EXPECT_THAT(page, HasSubstr("2,147,483,647"));
}

}  // namespace
}  // namespace kvasir::plan
