#include "cache/kv_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cache/footprint.hpp"
#include "tests/support/admission_cases.hpp"

namespace kvasir::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

KvCache make(std::vector<GroupConfig> groups, std::uint32_t max_sequences, std::uint64_t context,
             std::optional<std::uint64_t> order = std::nullopt) {
  return KvCache::create({std::move(groups), max_sequences, context, order}).value();
}

TEST(KvCache, ConfigurationErrorsNameTheValue) {
  const auto message = [](const KvCacheConfig& config) { return KvCache::create(config).error().message; };
  EXPECT_THAT(message({{}, 1, 10, {}}), HasSubstr("0 cache groups"));
  EXPECT_THAT(message({std::vector<GroupConfig>(9, {16, 4}), 1, 10, {}}), HasSubstr("9 cache groups"));
  EXPECT_THAT(message({{{16, 4, 0}}, 0, 10, {}}), HasSubstr("max_sequences = 0"));
  EXPECT_THAT(message({{{16, 4, 0}}, 1, 0, {}}), HasSubstr("max_sequence_rows = 0"));
  EXPECT_THAT(message({{{16, 4, 0}}, 1, 1ull << 31, {}}), HasSubstr("max_sequence_rows = 2147483648"));
  EXPECT_THAT(message({{{0, 4, 0}}, 1, 10, {}}), HasSubstr("block_tokens = 0"));
  EXPECT_THAT(message({{{16, 0, 0}}, 1, 10, {}}), HasSubstr("blocks = 0"));
  EXPECT_THAT(message({{{16, 4, 4}}, 1, 10, {}}), HasSubstr("4 of 4 blocks are reserved"));
}

TEST(KvCache, AdmissionIsExactAtTheLimit) {  // known fault B19: pool 4 x 16
  for (const test::AdmissionCase& c : test::kFourBlocksOfSixteen) {
    KvCache cache = make({{16, 4, 0}}, 2, 1000);
    Result<SequenceId> sequence = cache.admit(c.prompt, c.max_new);
    ASSERT_EQ(sequence.ok(), c.fits) << c.prompt << "+" << c.max_new;
    if (!c.fits) {
      EXPECT_EQ(sequence.error().code, ErrorCode::does_not_fit);
      EXPECT_THAT(sequence.error().message, AllOf(HasSubstr("5 KV blocks"), HasSubstr("4 are usable")));
      EXPECT_EQ(cache.sequences(), 0u);
      continue;
    }
    // It can use all of its bound, one row at a time after the prompt, and not one row more.
    cache.reserve_rows(*sequence, static_cast<std::uint32_t>(c.prompt));
    for (std::uint64_t i = 1; i < c.max_new; ++i) cache.reserve_rows(*sequence, 1);
    cache.check_invariants();
    EXPECT_EQ(cache.rows(*sequence), rows_bound(c.prompt, c.max_new));
    EXPECT_EQ(cache.stats(0).claimed, 0u);
    EXPECT_DEATH(cache.reserve_rows(*sequence, 1), "within its bound");
    cache.release(*sequence);
    EXPECT_EQ(cache.stats(0).pool.free, 4u);
  }
}

TEST(KvCache, ReservedBlocksAreNotUsable) {  // known fault B22: pool 8 x 16, one block reserved, model limit 256
  KvCache cache = make({{16, 8, 1}}, 4, 256);
  for (const std::uint64_t prompt : {113u, 130u}) {
    const Result<SequenceId> refused = cache.admit(prompt, 0);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::does_not_fit);
    EXPECT_THAT(refused.error().message, HasSubstr("7 are usable"));
  }
  EXPECT_TRUE(cache.admit(112, 0).ok());
}

TEST(KvCache, ExhaustionIsToldBeforeAnythingChanges) {
  KvCache cache = make({{16, 4, 0}, {4, 100, 0}}, 4, 1000);
  const SequenceId first = cache.admit(40, 0).value();
  EXPECT_EQ(cache.can_admit(17, 0), (FitVerdict{Fit::exhausted, 0, 2, 1}));
  const Result<SequenceId> second = cache.admit(17, 0);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::exhausted);
  EXPECT_EQ(cache.stats(0).claimed, 3u);
  EXPECT_EQ(cache.stats(1).claimed, 10u);
  cache.check_invariants();
  cache.release(first);  // nothing was ever stored: the whole claim comes back
  EXPECT_TRUE(cache.admit(17, 0).ok());
}

TEST(KvCache, HugeLimitsAreRefusedNotWrapped) {
  KvCache cache = make({{16, 4, 0}}, 4, 1000);
  EXPECT_EQ(cache.can_admit(2, kRowsUnbounded).fit, Fit::too_long);
  EXPECT_EQ(cache.can_admit(kRowsUnbounded, 2).fit, Fit::too_long);
}

TEST(KvCache, StaleIdAborts) {
  KvCache cache = make({{16, 4, 0}}, 1, 64);
  const SequenceId first = cache.admit(4, 1).value();
  cache.release(first);
  const SequenceId second = cache.admit(4, 1).value();
  EXPECT_NE(first, second);
  EXPECT_DEATH(cache.reserve_rows(first, 1), "no such sequence");
  EXPECT_DEATH(cache.release(SequenceId()), "no such sequence");
}

TEST(KvCache, ForkCopiesThePartialBlockOfWhoWritesFirst) {
  KvCache cache = make({{16, 8, 0}}, 3, 64);
  const SequenceId parent = cache.admit(20, 20).value();  // 39 rows: 3 blocks
  cache.reserve_rows(parent, 20);
  const SequenceId child = cache.fork(parent, 39).value();
  cache.check_invariants();
  EXPECT_EQ(cache.stats(0).pool.active, 2u) << "nothing is copied yet";
  EXPECT_EQ(cache.stats(0).claimed, 1u + 1u + 2u) << "the third blocks of both, and a copy of the last block for each";
  cache.reserve_rows(parent, 1);
  ASSERT_EQ(cache.copies().size(), 1u);
  EXPECT_EQ(cache.copies()[0].from, 1);
  EXPECT_EQ(cache.copies()[0].to, 2);
  cache.reserve_rows(child, 1);
  EXPECT_EQ(cache.copies().size(), 1u) << "the child is the last holder and writes in place";
  EXPECT_EQ(cache.stats(0).claimed, 2u);
  cache.check_invariants();
}

TEST(KvCache, ForkThatDoesNotFitChangesNothing) {
  KvCache cache = make({{16, 4, 0}}, 3, 64);
  const SequenceId parent = cache.admit(20, 20).value();
  cache.reserve_rows(parent, 20);
  const Result<SequenceId> child = cache.fork(parent, 39);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code, ErrorCode::exhausted);
  EXPECT_THAT(child.error().message, AllOf(HasSubstr("3 KV blocks"), HasSubstr("1 are unclaimed")));
  cache.check_invariants();
  EXPECT_EQ(cache.stats(0).claimed, 1u);
}

TEST(KvCache, ASecondAnswerSharesThePromptsFullBlocks) {
  KvCache cache = make({{16, 20, 0}}, 3, 100);
  const SequenceId first = cache.admit(40, 30).value();   // 69 rows: 5 blocks
  cache.reserve_rows(first, 40);
  EXPECT_FALSE(cache.can_share(first, 39)) << "not before they are committed";
  cache.commit(first);
  cache.reserve_rows(first, 5);   // it has gone on meanwhile
  ASSERT_TRUE(cache.can_share(first, 39));
  EXPECT_EQ(cache.budget().check({69, 40, 1, cache.sharing(first, 39)}).ok(), true);
  const SequenceId second = cache.admit_sharing(first, 39, 40, 30).value();
  cache.check_invariants();
  ASSERT_EQ(cache.copies().size(), 1u);
  EXPECT_EQ(cache.copies()[0].from, cache.table(first, 0).ids()[2]);
  EXPECT_EQ(cache.copies()[0].to, cache.table(second, 0).ids()[2]);
  EXPECT_EQ(cache.rows(second), 39u);
  EXPECT_EQ(cache.stats(0).pool.active, 4u) << "three, and the copy of the partial one";
  EXPECT_EQ(cache.stats(0).pool.shared, 2u);
  EXPECT_EQ(cache.stats(0).claimed, 2u + 2u);
  cache.reserve_rows(second, 1);
  cache.release(first);
  cache.check_invariants();
  EXPECT_EQ(cache.stats(0).pool.active, 3u);
  EXPECT_EQ(cache.stats(0).pool.shared, 0u);
}

// The saving that the paper on paged attention gives for n samples of a prompt of P tokens and outputs of O: (n - 1) P' of
// n (P + O) rows, P' being the prompt's full blocks.
TEST(KvCache, SamplesOfOnePromptSaveWhatThePaperSays) {
  constexpr std::uint32_t kTokens = 16, kPrompt = 200, kOutput = 57, kFull = (kPrompt - 1) / kTokens * kTokens;
  for (const std::uint32_t n : {2u, 4u, 6u}) {
    KvCache cache = make({{kTokens, 200, 0}}, n, 400);
    std::vector<SequenceId> all{cache.admit(kPrompt, kOutput).value()};
    cache.reserve_rows(all[0], kPrompt);
    cache.commit(all[0]);
    while (all.size() < n) all.push_back(cache.admit_sharing(all[0], kPrompt - 1, kPrompt, kOutput).value());
    for (const SequenceId s : all) cache.reserve_rows(s, static_cast<std::uint32_t>(cache.bound(s)) - cache.rows(s));
    const std::uint64_t separate = n * blocks_for_rows(kPrompt + kOutput - 1, kTokens);
    EXPECT_EQ(separate - cache.stats(0).pool.active, (n - 1) * kFull / kTokens) << n;
    EXPECT_EQ(cache.stats(0).pool.shared, (n - 1) * kFull / kTokens);
    cache.check_invariants();
  }
}

TEST(KvCache, WhatAWindowHasLetGoIsNotShared) {
  KvCache cache = KvCache::create({{{4, 40, 0, {}}, {4, 12, 0, {8}}}, 3, 100, std::nullopt, 0}).value();
  const SequenceId first = cache.admit(20, 30).value();
  cache.reserve_rows(first, 20);
  cache.commit(first);
  EXPECT_TRUE(cache.can_share(first, 19)) << "row 19 reaches 12, row 20 reaches 13: one block";
  const SequenceId second = cache.admit_sharing(first, 19, 20, 30).value();
  EXPECT_EQ(cache.table(second, 1).dropped(), 3u);
  EXPECT_EQ(cache.table(second, 1).blocks(), 2u) << "one shared, one copied";
  cache.check_invariants();
  for (int i = 0; i < 3; ++i) cache.reserve_rows(first, 1), cache.commit(first), cache.clear_copies();
  EXPECT_FALSE(cache.can_share(first, 19)) << "its window has left the block of row 12";
  EXPECT_TRUE(cache.can_share(second, 19));
  cache.check_invariants();
}

TEST(KvCache, TruncatedRowsGoBackToTheClaim) {
  KvCache cache = make({{16, 4, 0}}, 1, 64);
  const SequenceId sequence = cache.admit(40, 10).value();
  cache.reserve_rows(sequence, 40);
  cache.truncate(sequence, 16);
  EXPECT_EQ(cache.stats(0).pool.active, 1u);
  EXPECT_EQ(cache.stats(0).claimed, 3u);
  cache.check_invariants();
  cache.reserve_rows(sequence, 33);
  EXPECT_EQ(cache.stats(0).pool.active, 4u);
}

TEST(KvCache, QuarantineNeverBreaksAPromise) {
  KvCache cache = make({{16, 4, 0}}, 2, 64);
  const SequenceId sequence = cache.admit(33, 0).value();
  ASSERT_TRUE(cache.quarantine(0, 3).ok());
  EXPECT_EQ(cache.quarantine(0, 2).error().code, ErrorCode::exhausted)
      << "three blocks are promised and three are left";
  cache.reserve_rows(sequence, 33);
  cache.check_invariants();
  EXPECT_EQ(cache.can_admit(64, 0).fit, Fit::too_large) << "it can never fit while the block is out";
  cache.unquarantine(0, 3);
  EXPECT_EQ(cache.can_admit(64, 0).fit, Fit::exhausted);
}

// Blocks of 4, a window of 8, steps of at most 6 rows.
KvCache windowed(std::uint32_t blocks, std::uint32_t max_sequences = 3) {
  KvCacheConfig config{{{4, blocks, 0, {8}}}, max_sequences, 1000, std::nullopt, 6};
  return KvCache::create(config).value();
}

void step(KvCache& cache, SequenceId sequence, std::uint32_t rows) {
  cache.reserve_rows(sequence, rows);
  cache.check_invariants();
  cache.commit(sequence);
  cache.check_invariants();
}

TEST(KvCache, BlocksThatAWindowHasPassedAreFreedAtOnce) {
  KvCache cache = windowed(10);
  const SequenceId sequence = cache.admit(30, 100).value();
  EXPECT_EQ(cache.stats(0).claimed, 4u) << "8 - 1 + 6 rows";
  for (int i = 0; i < 5; ++i) step(cache, sequence, 6);
  // Row 30 is next: it reaches rows 23 to 30, which begin in block 5.
  EXPECT_EQ(cache.table(sequence, 0).dropped(), 5u);
  EXPECT_EQ(cache.stats(0).left_behind, 5u);
  EXPECT_EQ(cache.stats(0).pool.active, 3u);
  EXPECT_EQ(cache.stats(0).claimed, 0u) << "8 rows lie in 3 blocks at most, and it holds them";
  for (int i = 0; i < 99; ++i) {
    cache.reserve_rows(sequence, 1);
    ASSERT_LE(cache.stats(0).pool.active + cache.stats(0).claimed, 3u);
    cache.commit(sequence);
  }
  EXPECT_EQ(cache.rows(sequence), 129u) << "logical length is the absolute position";
  cache.check_invariants();
  EXPECT_DEATH(cache.truncate(sequence, 100), "does not come back");
}

// Known fault B05: at W - 1, W and W + 1 rows, and at every length after, exactly the rows of the window are held.
TEST(KvCache, WhatTheNextRowReachesIsHeldAtEveryLength) {
  for (const std::uint32_t prompt : {3u, 6u, 7u, 8u, 9u, 16u, 17u}) {
    KvCache cache = KvCache::create({{{4, 20, 0, {8}}}, 1, 1000, std::nullopt, 0}).value();
    const SequenceId sequence = cache.admit(prompt, 30).value();
    step(cache, sequence, prompt);
    for (std::uint32_t rows = prompt; rows < prompt + 12; ++rows) {
      const BlockTable& table = cache.table(sequence, 0);
      const std::uint32_t reached = rows < 8 ? 0 : rows - 7;
      ASSERT_EQ(table.rows(), rows);
      ASSERT_EQ(table.dropped(), reached / 4) << "prompt " << prompt << " rows " << rows;
      step(cache, sequence, 1);
    }
  }
}

TEST(KvCache, AStepThatIsGivenUpKeepsItsClaim) {
  KvCache cache = windowed(4, 1);
  const SequenceId sequence = cache.admit(40, 1).value();
  for (int i = 0; i < 5; ++i) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      cache.reserve_rows(sequence, 6);
      cache.truncate(sequence, cache.rows(sequence) - 6);
      cache.check_invariants();
    }
    step(cache, sequence, 6);
  }
  EXPECT_DEATH(cache.reserve_rows(sequence, 7), "no more rows beside a window");
}

TEST(KvCache, ForksOfAWindowShareUntilTheyPart) {
  KvCache cache = windowed(12, 4);
  const SequenceId parent = cache.admit(18, 40).value();
  for (int i = 0; i < 3; ++i) step(cache, parent, 6);
  EXPECT_EQ(cache.stats(0).pool.active, 3u);
  const SequenceId child = cache.fork(parent, 60).value();
  EXPECT_EQ(cache.stats(0).pool.active, 3u) << "nothing is copied yet";
  EXPECT_EQ(cache.stats(0).claimed, 6u) << "each may come to hold three blocks of its own";
  for (int i = 0; i < 20; ++i) {
    step(cache, parent, 1);
    step(cache, child, 1);
    cache.clear_copies();
  }
  EXPECT_EQ(cache.stats(0).pool.active + cache.stats(0).claimed, 6u);
  cache.release(parent);
  cache.check_invariants();
  step(cache, child, 1);
  EXPECT_EQ(cache.stats(0).pool.active, 2u) << "row 39 is next: it reaches rows 32 to 39";
}

// Two groups of one arena of 6 superpages: full history in blocks of 4, two a superpage, and a window in blocks of 8 rows.
KvCache shared_arena(std::uint32_t superpages = 6) {
  return KvCache::create({{{4, superpages * 2, 0, {}, 2}, {8, superpages, 0, {8}, 1}}, 8, 1000, std::nullopt, 8}).value();
}

TEST(KvCache, GroupsTakeSuperpagesAsTheyNeedThemAndGiveThemBack) {
  KvCache cache = shared_arena();
  EXPECT_EQ(cache.free_superpages(), 6u);
  const SequenceId sequence = cache.admit(8, 17).value();   // 24 rows: 6 blocks, and 3 of the window and a step
  EXPECT_EQ(cache.free_superpages(), 6u) << "a claim takes none";
  EXPECT_EQ(cache.can_admit(1, 1).fit, Fit::exhausted) << "but promises all six";
  step(cache, sequence, 8);
  for (int i = 0; i < 16; ++i) step(cache, sequence, 1);
  EXPECT_EQ(cache.stats(0).superpages, 3u);
  EXPECT_EQ(cache.stats(1).superpages, 1u) << "the window has one block where a row begins one";
  cache.release(sequence);
  EXPECT_EQ(cache.free_superpages(), 6u);
}

TEST(KvCache, BlocksMoveTogetherWhereHolesStandInTheWay) {
  // Four blocks of 16 rows a superpage, or one of 4; seven superpages.
  KvCache cache = KvCache::create({{{16, 28, 0, {}, 4}, {4, 7, 0, {}, 1}}, 8, 100, std::nullopt, 0}).value();
  std::vector<SequenceId> all;
  for (int i = 0; i < 5; ++i) all.push_back(cache.admit(4, 0).value()), step(cache, all.back(), 4);
  EXPECT_EQ(cache.stats(0).superpages, 2u) << "four blocks and one";
  EXPECT_EQ(cache.free_superpages(), 0u);
  for (int i = 0; i < 3; ++i) cache.release(all[static_cast<std::size_t>(i)]);
  EXPECT_EQ(cache.can_admit(16, 0), (FitVerdict{Fit::exhausted, 1, 4, 3})) << "two superpages hold one block each";
  const SequenceId last = all[4], fork = cache.fork(last, 4).value();
  const BlockId before = cache.table(last, 0).ids()[0];
  cache.compact(16, 0);
  ASSERT_EQ(cache.copies().size(), 1u);
  EXPECT_EQ(cache.copies()[0].group, 0u);
  EXPECT_EQ(cache.copies()[0].from, before);
  for (const SequenceId holder : {last, fork}) EXPECT_EQ(cache.table(holder, 0).ids()[0], cache.copies()[0].to);
  EXPECT_EQ(cache.stats(0).moved, 1u);
  EXPECT_EQ(cache.free_superpages(), 4u);
  cache.check_invariants();
  cache.clear_copies();
  EXPECT_TRUE(cache.admit(16, 0).ok());
  cache.compact(16, 0);
  EXPECT_TRUE(cache.copies().empty()) << "what does not fit however it lies moves nothing";
}

TEST(KvCache, QuarantineInASharedArenaLeavesEveryPromise) {
  KvCache cache = shared_arena(4);
  const SequenceId sequence = cache.admit(8, 9).value();   // 16 rows: 4 blocks and 2: all four superpages
  step(cache, sequence, 4);
  EXPECT_EQ(cache.quarantine(0, 1).error().code, ErrorCode::exhausted);
  cache.release(sequence);
  EXPECT_DEATH(cache.quarantine(0, 1).ok(), "only a free block") << "its superpage is not the group's any more";
}

}  // namespace
}  // namespace kvasir::cache
