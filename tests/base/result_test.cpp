#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <unordered_set>

#include "base/ids.hpp"

namespace kvasir {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorCode::bad_input, "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  KV_ASSIGN(const int halved, half(value));
  return half(halved);
}

Status both_even(int a, int b) {
  KV_TRY(half(a));
  KV_TRY(half(b));
  return ok_status();
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(4), 2);
  EXPECT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error().message, "odd");
  Result<std::unique_ptr<int>> owned(std::make_unique<int>(7));
  EXPECT_EQ(*std::move(owned).value(), 7) << "values may be move-only";
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().code, ErrorCode::bad_input);
  EXPECT_TRUE(both_even(2, 4).ok());
  EXPECT_FALSE(both_even(2, 3).ok());
  EXPECT_FALSE(both_even(1, 2).ok());
}

TEST(ResultDeathTest, TakingWhatIsNotThereIsAProgrammerError) {
  EXPECT_DEATH((void)half(3).value(), "odd");
  EXPECT_DEATH((void)half(4).error(), "holds a value");
}

TEST(CheckDeathTest, SaysTheRuleAndThePlace) {
  const int blocks = 3;
  EXPECT_DEATH(KV_CHECK(blocks == 4, "there are four blocks"), "result_test.cpp:[0-9]+: check failed: blocks == 4: there are four");
  KV_CHECK(blocks == 3, "no effect when it holds");
}

TEST(StrongId, DefaultsToNoneAndOrdersAndHashes) {
  EXPECT_FALSE(RequestId().valid());
  EXPECT_TRUE(RequestId(0).valid());
  EXPECT_LT(RequestId(1), RequestId(2));
  EXPECT_EQ((std::unordered_set<SequenceId>{SequenceId(1), SequenceId(1), SequenceId(2)}.size()), 2u);
  static_assert(!std::is_convertible_v<RequestId, SequenceId> && !std::is_convertible_v<std::uint64_t, RequestId>);
}

}  // namespace
}  // namespace kvasir
