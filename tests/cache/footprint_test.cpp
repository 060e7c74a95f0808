#include "cache/footprint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cache/block_pool.hpp"
#include "cache/kv_cache.hpp"
#include "cache/page_table.hpp"
#include "tests/cache/counting_new.hpp"

namespace kvasir::cache {
namespace {

TEST(Footprint, RowsBoundNeedsNoRowForTheLastToken) {
  EXPECT_EQ(rows_bound(64, 0), 64u);
  EXPECT_EQ(rows_bound(64, 1), 64u);
  EXPECT_EQ(rows_bound(60, 5), 64u);
  EXPECT_EQ(rows_bound(1, 64), 64u);
  EXPECT_EQ(rows_bound(1, kRowsUnbounded), kRowsUnbounded);
  EXPECT_EQ(rows_bound(2, kRowsUnbounded), kRowsUnbounded) << "saturates";
  EXPECT_EQ(rows_bound(kRowsUnbounded, kRowsUnbounded), kRowsUnbounded);
}

TEST(Footprint, BlocksAndLastBlockOfEveryLength) {
  for (std::uint64_t rows = 0, blocks = 0, last = 0; rows < 100; ++rows) {
    EXPECT_EQ(blocks_for_rows(rows, 4), blocks) << rows;
    EXPECT_EQ(last_block_rows(rows, 4), last) << rows;
    if (last == 4 || rows == 0) ++blocks, last = 0;
    ++last;
  }
  EXPECT_EQ(blocks_for_rows(kRowsUnbounded, 16), kRowsUnbounded / 16 + 1) << "no overflow on the way";
}

// Slid over every place in its blocks, a window never lies in more, and in some place in as many.
TEST(Footprint, AWindowLiesInNoMoreBlocksThanPlanned) {
  for (std::uint32_t window = 1; window < 40; ++window) {
    std::uint64_t most = 0;
    for (std::uint64_t end = window; end < window + 200; ++end) most = std::max(most, (end - 1) / 8 - (end - window) / 8 + 1);
    EXPECT_EQ(blocks_for_window(10'000, window, 8), most) << window;
  }
  EXPECT_EQ(blocks_for_window(10, 512, 8), 2u) << "a sequence shorter than its window";
  EXPECT_EQ(blocks_for_window(10, 0, 8), 2u);
}

TEST(Footprint, TableCapacityIsTheSmallerOfContextAndPool) {
  EXPECT_EQ(table_capacity(100, 16, 1000), 7u);
  EXPECT_EQ(table_capacity(100'000, 16, 1000), 1000u);
}

TEST(Footprint, PoolAllocatesExactlyWhatIsPlanned) {
  if (!test::kCountsAreExact) GTEST_SKIP() << "an instrumented build";
  for (const std::uint32_t blocks : {1u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    const test::Allocations plain = test::allocations_of([&] { BlockPool pool(blocks); });
    EXPECT_EQ(plain.bytes, pool_metadata_bytes(blocks, false)) << blocks;
    const test::Allocations shuffled = test::allocations_of([&] { BlockPool pool(blocks, 7); });
    EXPECT_EQ(shuffled.bytes, pool_metadata_bytes(blocks, true)) << blocks;
    EXPECT_LE(plain.bytes, 64u * blocks);
  }
}

TEST(Footprint, PageTableAllocatesExactlyWhatIsPlanned) {
  if (!test::kCountsAreExact) GTEST_SKIP() << "an instrumented build";
  const test::Allocations made = test::allocations_of([&] { PageTable table(7, 33); });
  EXPECT_EQ(made.bytes, page_table_bytes(7, 33));
}

TEST(Footprint, CacheAllocatesExactlyWhatIsPlanned) {
  if (!test::kCountsAreExact) GTEST_SKIP() << "an instrumented build";
  const KvCacheConfig configs[] = {{{{16, 1000, 0}}, 3, 500, std::nullopt},
                                   {{{16, 1000, 1}, {32, 70, 0}}, 9, 100'000, std::nullopt},
                                   {{{16, 1000, 0}}, 1, 1, 7}};
  for (const KvCacheConfig& config : configs) {
    const test::Allocations made = test::allocations_of([&] { EXPECT_TRUE(KvCache::create(config).ok()); });
    EXPECT_EQ(made.bytes, KvCache::metadata_bytes(config));
  }
}

}  // namespace
}  // namespace kvasir::cache
