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
    EXPECT_EQ(blocks_held(10'000, {window}, 1, 8), most) << window;
  }
  EXPECT_EQ(blocks_held(10, {512}, 1, 8), 2u) << "a sequence shorter than its window";
  EXPECT_EQ(blocks_held(10, {}, 1, 8), 2u);
}

// The same with steps of several rows, and chunks, walked through step by step: what is reached before each step's first row
// and the step's rows.
TEST(Footprint, AStepBesideItsWindowLiesInNoMoreBlocksThanPlanned) {
  for (const bool chunked : {false, true}) {
    for (const std::uint32_t window : {1u, 7u, 8u, 9u, 16u, 30u, 32u}) {
      for (std::uint32_t step = 1; step < 40; ++step) {
        const format::Reach reach{window, chunked};
        std::uint64_t most = 0;
        for (std::uint32_t rows = 0; rows < 400; ++rows)
          most = std::max<std::uint64_t>(most, (rows + step - 1) / 8 - reach.first_key(rows) / 8 + 1);
        const std::uint64_t planned = blocks_held(10'000, reach, step, 8);
        // Chunks that are no multiple of the block need not begin at every place in one.
        if (chunked && window % 8 != 0) EXPECT_GE(planned, most) << window << " chunked, step " << step;
        else EXPECT_EQ(planned, most) << window << (chunked ? " chunked" : "") << ", step " << step;
      }
    }
  }
  EXPECT_EQ(blocks_held(100, {8}, 100, 8), 13u) << "a step as long as the sequence holds all of it";
  EXPECT_EQ(blocks_held(100, {8}, 0, 8), blocks_held(100, {8}, 1, 8));
}

TEST(Footprint, TableCapacityIsTheSmallerOfContextAndPool) {
  EXPECT_EQ(table_capacity(100, {}, 100, 16, 1000), 7u);
  EXPECT_EQ(table_capacity(100'000, {}, 100'000, 16, 1000), 1000u);
  EXPECT_EQ(table_capacity(100'000, {512}, 64, 16, 1000), 37u) << "a window and a step beside it";
}

TEST(Footprint, PoolAllocatesExactlyWhatIsPlanned) {
  if (!test::kCountsAreExact) GTEST_SKIP() << "an instrumented build";
  for (const std::uint32_t blocks : {1u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    const test::Allocations plain = test::allocations_of([&] { BlockPool pool(blocks); });
    EXPECT_EQ(plain.bytes, pool_metadata_bytes(1, blocks, false)) << blocks;
    const test::Allocations shuffled = test::allocations_of([&] { BlockPool pool(blocks, 7); });
    EXPECT_EQ(shuffled.bytes, pool_metadata_bytes(1, blocks, true)) << blocks;
    EXPECT_LE(plain.bytes, 64u * blocks);
  }
  for (const std::uint32_t superpages : {1u, 2u, 65u}) {
    const test::Allocations made = test::allocations_of([&] { BlockPool pool(superpages, 7, 3); });
    EXPECT_EQ(made.bytes, pool_metadata_bytes(superpages, 7, true)) << superpages;
    const test::Allocations arena = test::allocations_of([&] { SuperpagePool pool(superpages); });
    EXPECT_EQ(arena.bytes, superpage_metadata_bytes(superpages)) << superpages;
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
                                   {{{16, 1000, 0}}, 1, 1, 7},
                                   {{{16, 1000, 0, {64}, 10}, {32, 300, 0, {}, 3}}, 9, 4096, 7, 128}};
  for (const KvCacheConfig& config : configs) {
    const test::Allocations made = test::allocations_of([&] { EXPECT_TRUE(KvCache::create(config).ok()); });
    EXPECT_EQ(made.bytes, KvCache::metadata_bytes(config));
  }
}

}  // namespace
}  // namespace kvasir::cache
