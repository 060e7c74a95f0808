// compact(): what it moves, what it leaves, and how much in one step.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cache/kv_cache.hpp"

namespace kvasir::cache {
namespace {

void step(KvCache& cache, SequenceId sequence, std::uint32_t rows) {
  cache.reserve_rows(sequence, rows);
  cache.commit(sequence);
}

TEST(Compaction, MovesLeaveRoomForTheCopiesOfTheSameStep) {
  // Two blocks of two rows a superpage, or one of a window of 80 rows, a row each.
  constexpr std::uint32_t kSuperpages = 464;
  KvCache cache = KvCache::create({{{2, 2 * kSuperpages, 0, {}, 2}, {1, kSuperpages, 0, {80}, 1}}, 4, 1000, std::nullopt, 2}).value();
  const SequenceId parent = cache.admit(599, 3).value(), neighbour = cache.admit(599, 0).value();
  for (std::uint32_t rows = 2; rows < 601; rows += 2)
    for (const SequenceId s : {parent, neighbour}) step(cache, s, std::min(2u, 599 - cache.rows(s)));
  cache.release(neighbour);
  EXPECT_EQ(cache.stats(0).superpages, 300u) << "half of each is free";
  ASSERT_TRUE(cache.fork(parent, 599).ok());
  ASSERT_TRUE(cache.admit(80, 0).ok());
  ASSERT_EQ(cache.can_admit(80, 0).fit, Fit::exhausted);
  cache.compact(80, 0);
  EXPECT_EQ(cache.copies().size(), kMovesPerStep);
  step(cache, parent, 1);
  EXPECT_EQ(cache.copies().size(), kMovesPerStep + 1) << "of the shared last block";
  cache.check_invariants();
  cache.clear_copies();
  cache.compact(80, 0);
  EXPECT_TRUE(cache.admit(80, 0).ok()) << "the next step goes on";
}

TEST(Compaction, HolesThatClaimsNeedAreLeft) {
  // Two blocks of 4 rows a superpage, two of 64 rows, or one of a window of 24 rows.
  constexpr std::uint32_t kSuperpages = 156;
  KvCache cache = KvCache::create({{{4, 2 * kSuperpages, 0, {}, 2}, {64, 2 * kSuperpages, 0, {}, 2}, {4, kSuperpages, 0, {24}, 1}},
                                   40, 100, std::nullopt, 4}).value();
  std::vector<SequenceId> all;
  for (int i = 0; i < 24; ++i) all.push_back(cache.admit(16, 0).value());
  for (int i = 0; i < 4; ++i)
    for (const SequenceId s : all) step(cache, s, 4);
  for (std::size_t i = 0; i < all.size(); i += 2) cache.release(all[i]);
  EXPECT_EQ(cache.stats(0).pool.free, 48u) << "one in every superpage";
  EXPECT_EQ(cache.stats(1).pool.free, 12u) << "the same";
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(cache.admit(32, 0).ok());
  EXPECT_EQ(cache.stats(0).claimed, 48u);
  EXPECT_EQ(cache.stats(1).claimed, 6u);
  EXPECT_EQ(cache.can_admit(4, 0).fit, Fit::exhausted);
  cache.compact(4, 0);
  EXPECT_EQ(cache.stats(0).moved, 0u) << "it would only have to draw another superpage";
  EXPECT_EQ(cache.stats(1).moved, 2u);
  EXPECT_TRUE(cache.admit(4, 0).ok());
  cache.check_invariants();
}

TEST(Compaction, ALargeSuperpageIsEmptiedOverSeveralSteps) {
  // 200 blocks a superpage, or one.
  KvCache cache = KvCache::create({{{1, 200 * 9, 0, {}, 200}, {100, 9, 0, {}, 1}}, 12, 100, std::nullopt, 100}).value();
  std::vector<SequenceId> all;
  for (int i = 0; i < 6; ++i) all.push_back(cache.admit(100, 0).value()), step(cache, all.back(), 100);
  EXPECT_EQ(cache.stats(0).superpages, 3u);
  for (const int i : {1, 3, 5}) cache.release(all[static_cast<std::size_t>(i)]);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cache.admit(1, 0).ok());
  EXPECT_EQ(cache.can_admit(1, 0).fit, Fit::exhausted) << "300 blocks are free and no superpage";
  cache.compact(1, 0);
  EXPECT_EQ(cache.copies().size(), kMovesPerStep);
  EXPECT_EQ(cache.can_admit(1, 0).fit, Fit::exhausted);
  cache.clear_copies();
  cache.compact(1, 0);
  EXPECT_EQ(cache.copies().size(), 100 - kMovesPerStep);
  EXPECT_TRUE(cache.can_admit(1, 0).ok());
  cache.check_invariants();
}

}  // namespace
}  // namespace kvasir::cache
