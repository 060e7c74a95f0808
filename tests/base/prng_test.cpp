#include "base/prng.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace kvasir {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers for philox4x32-10 that its authors publish (kat_vectors of Random123).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformCoversTheHalfOpenIntervalInExactSteps) {
  EXPECT_EQ(uniform01(0), 0.0f);
  EXPECT_EQ(uniform01(0xff), 0.0f) << "the low byte is not used";
  EXPECT_EQ(uniform01(0x100), 0x1p-24f);
  EXPECT_EQ(uniform01(0x80000000), 0.5f);
  EXPECT_EQ(uniform01(0xffffffff), 1.0f - 0x1p-24f);
}

TEST(PhiloxSequence, WordsAreThoseOfItsCountersInOrder) {
  PhiloxSequence sequence(0x1122334455667788, 0x99aabbccddeeff00);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (const std::uint32_t word : philox4x32({block, 0, 0xddeeff00, 0x99aabbcc}, {0x55667788, 0x11223344}))
      EXPECT_EQ(sequence.next(), word);
}

TEST(PhiloxSequence, StreamsAndSeedsDiffer) {
  EXPECT_NE(PhiloxSequence(1, 0).next(), PhiloxSequence(1, 1).next());
  EXPECT_NE(PhiloxSequence(1, 0).next(), PhiloxSequence(2, 0).next());
  EXPECT_EQ(PhiloxSequence(7, 3).next(), PhiloxSequence(7, 3).next());
}

TEST(PhiloxSequence, BelowIsEvenWithinFiveDeviations) {
  constexpr std::uint32_t kBound = 6, kDraws = 60'000;
  std::array<int, kBound> counts{};
  PhiloxSequence sequence(42);
  for (std::uint32_t i = 0; i < kDraws; ++i) ++counts.at(sequence.below(kBound));
  // Binomial: n p = 10,000, deviation sqrt(n p (1 - p)) = 91.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * 91);
  EXPECT_EQ(sequence.below(1), 0u);
}

TEST(PhiloxSequence, BelowRejectsTheUnevenRest) {
  // Of 2^32 words, a bound of 3 * 2^30 leaves a quarter that would favour some results.
  constexpr std::uint32_t kBound = 3u << 30;
  PhiloxSequence sequence(1);
  std::array<int, 3> thirds{};
  for (int i = 0; i < 30'000; ++i) ++thirds.at(sequence.below(kBound) >> 30);
  for (const int third : thirds) EXPECT_NEAR(third, 10'000, 5 * 82);
}

TEST(PhiloxSequenceDeathTest, ABoundIsPositive) { EXPECT_DEATH((void)PhiloxSequence(1).below(0), "positive"); }

}  // namespace
}  // namespace kvasir
