#include "cache/block_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/prng.hpp"

namespace kvasir::cache {
namespace {

TEST(BlockPool, AllocatesTheLowestFreeIdWhateverTheOrderOfRelease) {
  BlockPool pool(8);
  for (BlockId expected = 0; expected < 8; ++expected) EXPECT_EQ(pool.allocate(), expected);
  for (const BlockId block : {5, 1, 7}) pool.release(block);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 5);
  EXPECT_EQ(pool.allocate(), 7);
  EXPECT_DEATH(pool.allocate(), "free block");
}

TEST(BlockPool, AllocationOrderIsAPermutationFixedByItsSeed) {
  const auto order = [](std::optional<std::uint64_t> seed) {
    BlockPool pool(100, seed);
    std::vector<BlockId> ids;
    for (int i = 0; i < 100; ++i) ids.push_back(pool.allocate());
    pool.check_invariants();
    return ids;
  };
  std::vector<BlockId> shuffled = order(1);
  EXPECT_EQ(shuffled, order(1));
  EXPECT_NE(shuffled, order(2));
  EXPECT_NE(shuffled, order(std::nullopt));
  std::ranges::sort(shuffled);
  EXPECT_EQ(shuffled, order(std::nullopt));
}

TEST(BlockPool, SharedBlockIsFreedByItsLastHolder) {
  BlockPool pool(2);
  const BlockId block = pool.allocate();
  pool.add_ref(block);
  pool.release(block);
  EXPECT_EQ(pool.state(block), BlockState::active);
  pool.release(block);
  EXPECT_EQ(pool.state(block), BlockState::free);
  EXPECT_DEATH(pool.release(block), "nobody holds");
  EXPECT_DEATH(pool.add_ref(block), "content");
}

TEST(BlockPool, PublishedBlockStaysCachedUntilItsKeyIsDropped) {  // known fault B16: a recycled block keeps its old key
  BlockPool pool(1);
  const BlockId block = pool.allocate();
  pool.publish(block);
  pool.release(block);
  EXPECT_EQ(pool.state(block), BlockState::cached);
  EXPECT_EQ(pool.counts(), (PoolCounts{.total = 1, .cached = 1}));
  EXPECT_DEATH(pool.allocate(), "free block") << "a block that still answers for its key is not recycled";
  pool.add_ref(block);  // a hit
  EXPECT_EQ(pool.state(block), BlockState::active);
  pool.release(block);
  pool.pin(block);
  EXPECT_EQ(pool.counts().pinned, 1u);
  EXPECT_DEATH(pool.unpublish(block), "unpinned");
  pool.unpin(block);
  pool.unpublish(block);
  EXPECT_EQ(pool.allocate(), block);
  EXPECT_FALSE(pool.published(block));
}

TEST(BlockPool, QuarantinedActiveBlockGoesOutWhenReleased) {
  BlockPool pool(2);
  const BlockId held = pool.allocate();
  pool.quarantine(held);
  EXPECT_EQ(pool.state(held), BlockState::active);
  pool.release(held);
  EXPECT_EQ(pool.state(held), BlockState::quarantined);
  EXPECT_EQ(pool.allocate(), 1) << "the quarantined block is passed over";
  pool.unquarantine(held);
  EXPECT_EQ(pool.allocate(), held);
}

TEST(BlockPool, UnknownBlockAborts) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.release(2), "no such block");
  EXPECT_DEATH(pool.release(kNoBlock), "no such block");
}

// The naive twin: one record a block, states and counts recomputed from scratch.
struct TwinBlock {
  int refs = 0;
  bool published = false, pinned = false, quarantined = false;
  BlockState state() const {
    if (refs > 0) return BlockState::active;
    if (quarantined) return BlockState::quarantined;
    return published ? BlockState::cached : BlockState::free;
  }
};

PoolCounts counts_of(const std::vector<TwinBlock>& twin) {
  PoolCounts counts{.total = static_cast<std::uint32_t>(twin.size())};
  for (const TwinBlock& b : twin) {
    counts.active += b.state() == BlockState::active;
    counts.cached += b.state() == BlockState::cached;
    counts.free += b.state() == BlockState::free;
    counts.quarantined += b.state() == BlockState::quarantined;
    counts.pinned += b.state() == BlockState::cached && b.pinned;
    counts.shared += b.refs > 1 ? static_cast<std::uint64_t>(b.refs - 1) : 0;
  }
  return counts;
}

TEST(BlockPool, RandomOperationsAgreeWithTheNaiveTwin) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PhiloxSequence random(seed);
    const std::uint32_t size = 1 + random.below(90);
    BlockPool pool(size);
    std::vector<TwinBlock> twin(size);
    for (int step = 0; step < 1500; ++step) {
      const auto block = static_cast<BlockId>(random.below(size));
      TwinBlock& b = twin[static_cast<std::size_t>(block)];
      switch (random.below(8)) {
        case 0:
        case 1: {
          const auto lowest = std::ranges::find(twin, BlockState::free, &TwinBlock::state);
          if (lowest == twin.end()) break;
          ASSERT_EQ(pool.allocate(), static_cast<BlockId>(lowest - twin.begin()))
              << "seed " << seed << " step " << step;
          *lowest = {.refs = 1};
          break;
        }
        case 2:
          if (b.state() != BlockState::active && b.state() != BlockState::cached) break;
          pool.add_ref(block), ++b.refs;
          break;
        case 3:
          if (b.refs > 0) pool.release(block), --b.refs;
          break;
        case 4:
          if (b.refs > 0 && !b.published && !b.quarantined) pool.publish(block), b.published = true;
          break;
        case 5:
          if (b.published && !b.pinned) pool.unpublish(block), b.published = false;
          break;
        case 6:
          if (!b.published) break;
          b.pinned ? pool.unpin(block) : pool.pin(block);
          b.pinned = !b.pinned;
          break;
        case 7:
          if (b.published) break;
          b.quarantined ? pool.unquarantine(block) : pool.quarantine(block);
          b.quarantined = !b.quarantined;
          break;
      }
      ASSERT_EQ(pool.state(block), b.state()) << "seed " << seed << " step " << step;
      ASSERT_EQ(pool.counts(), counts_of(twin)) << "seed " << seed << " step " << step;
      pool.check_invariants();
    }
  }
}

TEST(BlockPool, FullestSuperpageFirstSoThatOthersRunEmpty) {
  BlockPool pool(3, 4, std::nullopt);
  EXPECT_EQ(pool.counts().total, 0u);
  EXPECT_EQ(pool.state(0), BlockState::absent);
  EXPECT_DEATH(pool.allocate(), "free block");
  for (const std::uint32_t superpage : {2, 0}) pool.add_superpage(superpage);
  EXPECT_EQ(pool.allocate(), 0) << "the lowest of equally full ones";
  for (const BlockId expected : {1, 2, 3, 8, 9}) EXPECT_EQ(pool.allocate(), expected);
  for (const BlockId block : {0, 1, 2}) pool.release(block);
  EXPECT_EQ(pool.emptiest_superpage(), 0u);
  EXPECT_EQ(pool.allocate(), 10) << "in superpage 2, of which more is in use";
  pool.release(3);
  EXPECT_EQ(pool.empty_superpage(), 0u);
  pool.remove_superpage(0);
  EXPECT_EQ(pool.counts(), (PoolCounts{.total = 4, .active = 3, .free = 1}));
  EXPECT_EQ(pool.empty_superpage(), std::nullopt);
  EXPECT_DEATH(pool.remove_superpage(2), "all free");
  EXPECT_DEATH(pool.add_superpage(2), "added once");
  EXPECT_DEATH(pool.quarantine(1), "its group's superpage");
  pool.check_invariants();
}

TEST(BlockPool, WhatCannotMoveKeepsItsSuperpage) {
  BlockPool pool(2, 4, std::nullopt);
  pool.add_superpage(0);
  pool.add_superpage(1);
  for (int i = 0; i < 5; ++i) pool.allocate();
  EXPECT_EQ(pool.emptiest_superpage(), 1u);
  pool.publish(4);
  EXPECT_EQ(pool.emptiest_superpage(), 0u) << "a published block's place is known elsewhere";
}

TEST(BlockPool, WhatMovesOutOfASuperpageGoesToAnother) {
  BlockPool pool(3, 3, std::nullopt);
  pool.add_superpage(0);
  pool.add_superpage(1);
  for (int i = 0; i < 4; ++i) pool.allocate();
  pool.quarantine(3);
  pool.release(1);
  pool.release(2);
  pool.release(3);
  EXPECT_EQ(pool.emptiest_superpage(), 0u) << "the other holds what cannot move";
  EXPECT_EQ(pool.allocate_outside(0), 4) << "though the first is as full, and allocate() would choose it";
  EXPECT_EQ(pool.allocate_outside(1), 1);
  EXPECT_EQ(pool.allocate_outside(0), 5);
  EXPECT_DEATH(pool.allocate_outside(0), "in another superpage");
}

// Superpages come and go at random; the twin searches all of them.
TEST(BlockPool, RandomSuperpagesAgreeWithTheNaiveTwin) {
  constexpr std::uint32_t kSuperpages = 7, kSlices = 5;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PhiloxSequence random(seed);
    BlockPool pool(kSuperpages, kSlices, std::nullopt);
    std::array<bool, kSuperpages> present{};
    std::array<bool, kSuperpages * kSlices> used{};
    const auto used_in = [&](std::uint32_t s) { return std::count_if(&used[s * kSlices], &used[s * kSlices] + kSlices, [](bool u) { return u; }); };
    for (int step = 0; step < 2000; ++step) {
      const std::uint32_t s = random.below(kSuperpages), b = random.below(kSuperpages * kSlices);
      switch (random.below(5)) {
        case 0:
          if (!present[s]) pool.add_superpage(s), present[s] = true;
          else if (used_in(s) == 0) pool.remove_superpage(s), present[s] = false;
          break;
        case 1:
        case 2: {
          int best = -1;
          for (std::uint32_t at = 0; at < kSuperpages; ++at)
            if (present[at] && used_in(at) < kSlices && (best < 0 || used_in(at) > used_in(static_cast<std::uint32_t>(best)))) best = static_cast<int>(at);
          if (best < 0) break;
          std::uint32_t lowest = static_cast<std::uint32_t>(best) * kSlices;
          while (used[lowest]) ++lowest;
          ASSERT_EQ(pool.allocate(), static_cast<BlockId>(lowest)) << "seed " << seed << " step " << step;
          used[lowest] = true;
          break;
        }
        default:
          if (used[b]) pool.release(static_cast<BlockId>(b)), used[b] = false;
          break;
      }
      pool.check_invariants();
    }
  }
}

}  // namespace
}  // namespace kvasir::cache
