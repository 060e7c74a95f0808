#include "cache/claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvasir::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClaimLedger, ConvertedAndReturnedClaimsAreGone) {
  ClaimLedger ledger(2);
  ledger.claim(5);
  ledger.convert(2);
  ledger.give_back(3);
  EXPECT_EQ(ledger.claimed(), 0u);
  EXPECT_EQ(ledger.reserved(), 2u);
  EXPECT_DEATH(ledger.convert(1), "more blocks than were claimed");
  EXPECT_DEATH(ledger.give_back(1), "more blocks than were claimed");
}

GroupBudget own(std::uint32_t block_tokens, std::uint64_t total, std::uint64_t available, std::uint64_t promised = 0) {
  return {.block_tokens = block_tokens, .available = available, .promised = promised, .total = total};
}

TEST(AdmissionBudget, EveryGroupMustFit) {
  AdmissionBudget budget(100, 2);
  budget.add_group(own(16, 10, 10));
  budget.add_group(own(4, 20, 13, 1));
  EXPECT_TRUE(budget.check({48, 48}).ok());
  EXPECT_EQ(budget.check({49, 1}), (FitVerdict{Fit::exhausted, 1, 13, 12}));
  EXPECT_EQ(budget.check({81, 1}), (FitVerdict{Fit::too_large, 1, 21, 20}));
  EXPECT_EQ(budget.check({101, 1}), (FitVerdict{Fit::too_long, 0, 101, 100}));
  budget.take({16, 16});
  EXPECT_TRUE(budget.check({32, 1}).ok());
  budget.take({32, 1});
  EXPECT_EQ(budget.check({1, 1}).fit, Fit::no_sequence_slot);
  EXPECT_EQ(budget.check({81, 1}).fit, Fit::too_large) << "what can never fit is told before what must wait";
  EXPECT_DEATH(budget.take({1, 1}), "does not fit");
}

TEST(AdmissionBudget, WhatIsOutOfUseIsToldInNeverFits) {
  AdmissionBudget budget(1000, 2);
  GroupBudget group = own(16, 20, 11, 1);
  group.unusable = 3;   // reserved and quarantined
  budget.add_group(group);
  EXPECT_EQ(budget.check({18 * 16, 1}), (FitVerdict{Fit::too_large, 0, 18, 17}));
  EXPECT_EQ(budget.check({11 * 16, 1}), (FitVerdict{Fit::exhausted, 0, 11, 10}));
  EXPECT_TRUE(budget.check({10 * 16, 1}).ok());
}

// A window holds its own rows and those of one step of the prompt, however long the sequence.
TEST(AdmissionBudget, AWindowWantsWhatItHoldsAtOneTime) {
  AdmissionBudget budget(100'000, 9);
  GroupBudget group = own(16, 10, 7);
  group.reach = {64};
  group.max_step_rows = 32;
  budget.add_group(group);
  EXPECT_EQ(group.wanted(100'000, 1), 5u);
  EXPECT_EQ(group.wanted(100'000, 10'000), 7u) << "94 rows, beginning with the last of a block";
  EXPECT_EQ(group.wanted(20, 10), 2u);
  EXPECT_TRUE(budget.check({100'000, 10'000}).ok());
  budget.take({20, 10});
  EXPECT_EQ(budget.check({100'000, 10'000}), (FitVerdict{Fit::exhausted, 0, 7, 5}));
  EXPECT_TRUE(budget.check({100'000, 1}).ok()) << "a decoding sequence needs less";
}

// Two groups of one arena: blocks of 16 rows, three of one and two of the other a superpage.
AdmissionBudget arena(std::uint64_t free, std::uint64_t all, std::uint64_t available_a, std::uint64_t promised_a) {
  AdmissionBudget budget(10'000, 9, free, all);
  GroupBudget a = own(16, all * 3, available_a, promised_a), b = own(16, all * 2, 0);
  a.blocks_per_superpage = 3;
  b.blocks_per_superpage = 2;
  budget.add_group(a);
  budget.add_group(b);
  return budget;
}

TEST(AdmissionBudget, GroupsOfOneArenaMustFitTogether) {
  const AdmissionBudget empty = arena(5, 5, 0, 0);
  EXPECT_TRUE(empty.check({6 * 16, 1}).ok()) << "two superpages of three and three of two";
  EXPECT_EQ(empty.check({7 * 16, 1}), (FitVerdict{Fit::too_large, 1, 7, 4})) << "of two that the first leaves";
  const AdmissionBudget busy = arena(2, 5, 2, 1);   // one block left in its superpage
  EXPECT_TRUE(busy.check({16, 1}).ok());
  EXPECT_TRUE(busy.check({32, 1}).ok());
  EXPECT_EQ(busy.check({48, 1}), (FitVerdict{Fit::exhausted, 1, 3, 2}));
}

TEST(AdmissionBudget, SpendingNeverPromisesWhatIsNotThere) {
  AdmissionBudget budget = arena(5, 5, 0, 0);
  int taken = 0;
  while (budget.check({16, 1}).ok()) budget.take({16, 1}), ++taken;
  EXPECT_EQ(taken, 6) << "6 of both: two superpages and three";
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
