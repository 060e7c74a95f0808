#include "cache/block_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cache/page_table.hpp"

namespace kvasir::cache {
namespace {

using ::testing::ElementsAre;

// A table with storage of its own.
struct OwnedTable {
  OwnedTable(std::uint32_t capacity, std::uint32_t block_tokens) : storage(capacity), table(storage, block_tokens) {}
  std::vector<BlockId> storage;
  BlockTable table;
};

TEST(BlockTable, LastBlockOfEveryLength) {  // known fault B16
  constexpr std::array<std::array<std::uint32_t, 3>, 6> kLengthBlocksLast = {
      {{0, 0, 0}, {1, 1, 1}, {3, 1, 3}, {4, 1, 4}, {5, 2, 1}, {8, 2, 4}}};
  for (const auto& [length, blocks, last] : kLengthBlocksLast) {
    BlockPool pool(4);
    OwnedTable whole(4, 4);
    whole.table.append(length, pool);
    EXPECT_EQ(whole.table.blocks(), blocks) << length;
    EXPECT_EQ(whole.table.last_block_len(), last) << length;
    whole.table.truncate(0, pool);
    OwnedTable by_one(4, 4);  // allocate, free, allocate: the same from recycled blocks, row by row
    for (std::uint32_t i = 0; i < length; ++i) by_one.table.append(1, pool);
    EXPECT_EQ(by_one.table.blocks(), blocks) << length;
    EXPECT_EQ(by_one.table.last_block_len(), last) << length;
    by_one.table.check_invariants(pool);
    by_one.table.truncate(0, pool);
    EXPECT_EQ(pool.counts().free, 4u);
  }
}

TEST(BlockTable, AppendTakesWhatItSaid) {
  BlockPool pool(8);
  OwnedTable a(8, 4);
  EXPECT_EQ(a.table.blocks_to_append(0), 0u);
  EXPECT_EQ(a.table.blocks_to_append(4), 1u);
  EXPECT_EQ(a.table.blocks_to_append(5), 2u);
  a.table.append(3, pool);
  EXPECT_EQ(a.table.blocks_to_append(1), 0u);
  EXPECT_EQ(a.table.blocks_to_append(2), 1u);
  a.table.append(6, pool);
  EXPECT_THAT(a.table.ids(), ElementsAre(0, 1, 2));
}

TEST(BlockTable, OutgrowingTheStorageAborts) {
  BlockPool pool(8);
  OwnedTable a(2, 4);
  a.table.append(8, pool);
  EXPECT_DEATH(a.table.append(1, pool), "outgrew");
}

TEST(BlockTable, ForkSharesFullBlocksAndCopiesThePartialOne) {
  BlockPool pool(8);
  OwnedTable parent(8, 4), child(8, 4);
  parent.table.append(6, pool);
  child.table.share(parent.table, pool);
  EXPECT_EQ(child.table.rows(), 6u);
  EXPECT_TRUE(child.table.needs_copy(pool));
  EXPECT_TRUE(parent.table.needs_copy(pool)) << "whoever writes first copies";
  EXPECT_DEATH(child.table.append(1, pool), "shared block");
  const BlockTable::Replaced copy = child.table.replace_last(pool);
  EXPECT_EQ(copy.from, 1);
  EXPECT_EQ(copy.to, 2);
  EXPECT_FALSE(child.table.needs_copy(pool));
  EXPECT_FALSE(parent.table.needs_copy(pool)) << "the last holder writes in place";
  child.table.append(3, pool);
  EXPECT_THAT(child.table.ids(), ElementsAre(0, 2, 3));
  parent.table.append(2, pool);
  EXPECT_THAT(parent.table.ids(), ElementsAre(0, 1));
  parent.table.truncate(0, pool);
  EXPECT_EQ(pool.state(0), BlockState::active) << "the child still holds it";
  child.table.truncate(0, pool);
  EXPECT_EQ(pool.counts().free, 8u);
}

TEST(BlockTable, FullLastBlockNeedsNoCopy) {
  BlockPool pool(8);
  OwnedTable parent(8, 4), child(8, 4);
  parent.table.append(8, pool);
  child.table.share(parent.table, pool);
  EXPECT_FALSE(child.table.needs_copy(pool));
  child.table.append(1, pool);
  EXPECT_THAT(child.table.ids(), ElementsAre(0, 1, 2));
}

TEST(BlockTable, PublishedPartialBlockIsNotWritten) {
  BlockPool pool(8);
  OwnedTable a(8, 4);
  a.table.append(2, pool);
  pool.publish(0);
  EXPECT_TRUE(a.table.needs_copy(pool));
  a.table.replace_last(pool);
  EXPECT_EQ(pool.state(0), BlockState::cached);
  EXPECT_THAT(a.table.ids(), ElementsAre(1));
}

TEST(BlockTable, TruncateKeepsTheBlocksOfTheRowsKept) {
  BlockPool pool(8);
  OwnedTable a(8, 4);
  a.table.append(13, pool);
  a.table.truncate(8, pool);
  EXPECT_THAT(a.table.ids(), ElementsAre(0, 1));
  EXPECT_EQ(a.table.last_block_len(), 4u);
  a.table.truncate(5, pool);
  EXPECT_THAT(a.table.ids(), ElementsAre(0, 1));
  EXPECT_EQ(a.table.last_block_len(), 1u);
  EXPECT_DEATH(a.table.truncate(6, pool), "cannot lengthen");
}

TEST(PageTable, IsTheTablesInOrder) {
  BlockPool pool(16);
  OwnedTable a(8, 4), b(8, 4), c(8, 4);
  a.table.append(5, pool);
  b.table.append(4, pool);
  c.table.append(9, pool);
  PageTable pages(3, 8);
  for (int step = 0; step < 2; ++step) {  // planned anew each step in the same memory
    pages.clear();
    for (const OwnedTable* t : {&a, &b, &c}) pages.add(t->table);
    const format::PageTableView view = pages.view();
    ASSERT_EQ(view.sequences, 3);
    EXPECT_THAT(std::vector(view.kv_indptr, view.kv_indptr + 4), ElementsAre(0, 2, 3, 6));
    EXPECT_THAT(std::vector(view.kv_indices, view.kv_indices + 6), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(std::vector(view.last_block_len, view.last_block_len + 3), ElementsAre(1, 4, 1));
  }
  EXPECT_DEATH(pages.add(a.table), "more sequences");
}

TEST(PageTable, EmptySequenceAborts) {
  OwnedTable a(8, 4);
  PageTable pages(3, 8);
  EXPECT_EQ(pages.view().sequences, 0);
  EXPECT_EQ(pages.view().kv_indptr[0], 0);
  EXPECT_DEATH(pages.add(a.table), "at least one row");
}

}  // namespace
}  // namespace kvasir::cache
