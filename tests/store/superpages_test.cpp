#include "store/superpages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/prng.hpp"

namespace kvasir::store {
namespace {

bool tails_are_small(std::uint64_t superpage, const std::vector<std::uint64_t>& blocks) {
  for (const std::uint64_t block : blocks)
    if (superpage < block || (superpage % block) * kMaxTailFraction >= superpage) return false;
  return true;
}

TEST(Superpages, SmallestMultipleWithEveryTailUnderOnePercent) {
  PhiloxSequence random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> blocks;
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) blocks.push_back(32 * (1 + random.below(20'000)));
    const std::uint64_t chosen = choose_superpage_bytes(blocks, 4096).value();
    EXPECT_EQ(chosen % 4096, 0u);
    EXPECT_TRUE(tails_are_small(chosen, blocks));
    for (std::uint64_t smaller = 4096; smaller < chosen; smaller += 4096)
      ASSERT_FALSE(tails_are_small(smaller, blocks));
  }
}

TEST(Superpages, SizesThatOverflowAreRefused) {
  const std::vector<std::uint64_t> huge = {std::uint64_t{1} << 62};
  EXPECT_FALSE(choose_superpage_bytes(huge, 4096).ok());
}

}  // namespace
}  // namespace kvasir::store
