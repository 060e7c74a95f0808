#include "cache/claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr PoolCounts kPool{.total = 20, .active = 6, .cached = 5, .free = 7, .quarantined = 2, .pinned = 1};

TEST(ClaimLedger, ClaimsWhatIsFreeOrEvictable) {
  ClaimLedger ledger;
  EXPECT_EQ(ledger.usable(kPool), 18u) << "all but the quarantined";
  EXPECT_EQ(ledger.claimable(kPool), 11u) << "free + cached - pinned";
  EXPECT_TRUE(ledger.claim(11, kPool).ok());
  EXPECT_EQ(ledger.claimable(kPool), 0u);
  ledger.check_invariants(kPool);
}

TEST(ClaimLedger, RefusalsChangeNothingAndNameBothNumbers) {
  ClaimLedger ledger(1);
  ASSERT_TRUE(ledger.claim(4, kPool).ok());
  const Status exhausted = ledger.claim(7, kPool);
  ASSERT_FALSE(exhausted.ok());
  EXPECT_EQ(exhausted.error().code, ErrorCode::exhausted);
  EXPECT_THAT(exhausted.error().message, AllOf(HasSubstr("7 KV blocks"), HasSubstr("6 are unclaimed")));
  const Status never = ledger.claim(18, kPool);
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().code, ErrorCode::does_not_fit);
  EXPECT_THAT(never.error().message, AllOf(HasSubstr("18 KV blocks"), HasSubstr("17 are usable")));
  EXPECT_EQ(ledger.claimed(), 4u);
}

TEST(ClaimLedger, ConvertedAndReturnedClaimsAreGone) {
  ClaimLedger ledger;
  ASSERT_TRUE(ledger.claim(5, kPool).ok());
  ledger.convert(2);
  ledger.give_back(3);
  EXPECT_EQ(ledger.claimed(), 0u);
  EXPECT_DEATH(ledger.convert(1), "more blocks than were claimed");
  EXPECT_DEATH(ledger.give_back(1), "more blocks than were claimed");
}

TEST(ClaimLedger, BrokenPromiseIsFound) {
  ClaimLedger ledger;
  ASSERT_TRUE(ledger.claim(11, kPool).ok());
  PoolCounts fewer = kPool;
  --fewer.free, ++fewer.active;
  EXPECT_DEATH(ledger.check_invariants(fewer), "claims <= free");
}

TEST(AdmissionBudget, EveryGroupMustFit) {
  AdmissionBudget budget(100, 2);
  budget.add_group(16, 10, 10);
  budget.add_group(4, 20, 12);
  EXPECT_TRUE(budget.check(48).ok());
  EXPECT_EQ(budget.check(49), (FitVerdict{Fit::exhausted, 1, 13, 12}));
  EXPECT_EQ(budget.check(81), (FitVerdict{Fit::too_large, 1, 21, 20}));
  EXPECT_EQ(budget.check(101), (FitVerdict{Fit::too_long, 0, 101, 100}));
  budget.take(16);
  EXPECT_TRUE(budget.check(32).ok());
  budget.take(32);
  EXPECT_EQ(budget.check(1).fit, Fit::no_sequence_slot);
  EXPECT_EQ(budget.check(81).fit, Fit::too_large) << "what can never fit is told before what must wait";
  EXPECT_DEATH(budget.take(1), "does not fit");
}

TEST(AdmissionBudget, EveryVerdictHasAMessage) {
  for (const Fit fit : {Fit::too_long, Fit::too_large}) {
    EXPECT_EQ(to_error({fit, 0, 9, 4}).code, ErrorCode::does_not_fit);
    EXPECT_THAT(to_error({fit, 0, 9, 4}).message, AllOf(HasSubstr("9"), HasSubstr("4")));
  }
  for (const Fit fit : {Fit::exhausted, Fit::no_sequence_slot}) {
    EXPECT_EQ(to_error({fit, 0, 9, 4}).code, ErrorCode::exhausted);
    EXPECT_THAT(to_error({fit, 0, 9, 4}).message, AllOf(HasSubstr("9"), HasSubstr("4")));
  }
}

}  // namespace
}  // namespace kvasir::cache
