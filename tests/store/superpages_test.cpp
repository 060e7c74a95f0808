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

std::uint64_t smallest_with_small_tails(const std::vector<std::uint64_t>& blocks) {
  std::uint64_t bytes = 4096;
  while (!tails_are_small(bytes, blocks)) bytes += 4096;
  return bytes;
}

TEST(Superpages, EveryTailIsUnderOnePercentAndNoneIsTwiceTheSmallest) {
  PhiloxSequence random(1);
  int larger = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> blocks;
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) blocks.push_back(32 * (1 + random.below(20'000)));
    const std::uint64_t chosen = choose_superpage_bytes(blocks, 4096).value(), smallest = smallest_with_small_tails(blocks);
    EXPECT_EQ(chosen % 4096, 0u);
    EXPECT_TRUE(tails_are_small(chosen, blocks));
    EXPECT_GE(chosen, smallest);
    EXPECT_LE(chosen, 2 * smallest);
    larger += chosen > smallest ? 1 : 0;
  }
  EXPECT_GT(larger, 30);
}

TEST(Superpages, ALittleLargerIsBetterWhereTailsVanish) {
  const std::uint64_t unit = 256 * 1024;
  EXPECT_EQ(smallest_with_small_tails({10 * unit, 52 * unit}), 210 * unit) << "52 have a tail of 0.95 %";
  EXPECT_EQ(choose_superpage_bytes(std::vector<std::uint64_t>{10 * unit, 52 * unit}, 4096).value(), 260 * unit) << "no tails";
  EXPECT_EQ(choose_superpage_bytes(std::vector<std::uint64_t>{unit, 5 * unit}, 4096).value(), 5 * unit) << "none to begin with";
  // 0.45 % is lost to tails, and no size up to twice this one makes up for larger superpages.
  const std::vector<std::uint64_t> three = {640 * 1024, 1408 * 1024, 1248 * 1024};
  EXPECT_EQ(choose_superpage_bytes(three, 4096).value(), smallest_with_small_tails(three));
}

TEST(Superpages, SizesThatOverflowAreRefused) {
  const std::vector<std::uint64_t> huge = {std::uint64_t{1} << 62};
  EXPECT_FALSE(choose_superpage_bytes(huge, 4096).ok());
}

}  // namespace
}  // namespace kvasir::store
