#include "cache/block_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace
}  // namespace kvasir::cache
