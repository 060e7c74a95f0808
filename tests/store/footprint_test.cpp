#include "store/footprint.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"
#include "platform/memory.hpp"
#include "store/kv_store.hpp"

namespace kvasir::store {
namespace {

format::KvGeometry geometry_of(const std::vector<std::uint32_t>& kv_heads) {
  format::KvGeometry geometry;
  std::uint32_t layer = 0;
  for (const std::uint32_t heads : kv_heads) {
    format::CacheGroup& group = geometry.groups.emplace_back();
    group.layers = {layer++};
    group.kv_heads = heads;
    group.head_dim = 64;
  }
  return geometry;
}

// The number of blocks asked for, in the least capacity: what a store of that capacity then has.
TEST(Footprint, PlanOfBlocksIsWhatAStoreOfThatCapacityHolds) {
  for (const std::uint64_t blocks : {1u, 2u, 7u, 1000u}) {
    const StorePlan one = *plan_blocks(geometry_of({3}), std::vector<std::uint64_t>{blocks});
    EXPECT_EQ(blocks * one.groups[0].layout.block_bytes() + one.slack_bytes, one.capacity_bytes);
    EXPECT_LT(one.slack_bytes, platform::page_bytes());
    KvStoreConfig config;
    config.geometry = geometry_of({3});
    config.capacity_bytes = one.capacity_bytes;
    const auto store = KvStore::create(config);
    ASSERT_TRUE(store.ok());
    EXPECT_EQ(store->blocks(0), blocks);
    EXPECT_EQ(store->plan().slack_bytes, one.slack_bytes);
  }
}

TEST(Footprint, PlanOfBlocksOfSeveralGroupsAddsUp) {
  const std::vector<std::uint64_t> blocks = {1000, 30, 0};
  const StorePlan plan = *plan_blocks(geometry_of({8, 1, 3}), blocks);
  std::uint64_t used = 0, superpages = 0;
  for (std::size_t g = 0; g < blocks.size(); ++g) {
    used += blocks[g] * plan.groups[g].layout.block_bytes();
    superpages += ceil_div(blocks[g], plan.groups[g].blocks_per_superpage);
  }
  EXPECT_EQ(plan.superpages, superpages) << "no group's blocks lie in another's superpage";
  EXPECT_EQ(used + plan.slack_bytes, plan.capacity_bytes);
  EXPECT_EQ(plan.arena_bytes, plan.capacity_bytes) << "superpages are whole pages";
}

TEST(Footprint, MoreBlocksThanNumbersAreRefused) {
  const auto plan = plan_blocks(geometry_of({3}), std::vector<std::uint64_t>{1ull << 31});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("at most 2147483647 can be numbered"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace kvasir::store
