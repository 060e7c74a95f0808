// What a window counts, at its edges.
#include "format/reach.hpp"

#include <gtest/gtest.h>

namespace kvasir::format {
namespace {

std::uint32_t keys_seen(const Reach& reach, std::uint32_t position) { return position - reach.first_key(position) + 1; }

TEST(Reach, AWindowCountsItsOwnToken) {
  const Reach window{.window = 4};
  EXPECT_EQ(keys_seen(window, 2), 3u) << "W - 1 tokens: all of them";
  EXPECT_EQ(keys_seen(window, 3), 4u) << "W tokens: all of them";
  EXPECT_EQ(keys_seen(window, 4), 4u) << "W + 1 tokens: the first is left behind";
  EXPECT_EQ(window.first_key(4), 1u);
  EXPECT_EQ(keys_seen({.window = 1}, 100), 1u) << "itself alone";
}

TEST(Reach, AChunkBeginsAtItsMultiples) {
  const Reach chunk{.window = 4, .chunked = true};
  EXPECT_EQ(chunk.first_key(3), 0u);
  EXPECT_EQ(chunk.first_key(4), 4u);
  EXPECT_EQ(chunk.first_key(7), 4u);
  EXPECT_EQ(chunk.first_key(8), 8u);
}

TEST(Reach, NoneSeesAll) { EXPECT_EQ(Reach{}.first_key(1'000'000), 0u); }

TEST(Reach, WhatOneLeavesBehindNoLaterOneSees) {
  for (const Reach reach : {Reach{}, Reach{.window = 1}, Reach{.window = 7}, Reach{.window = 7, .chunked = true}, Reach{.window = 4294967295u}}) {
    for (std::uint32_t position = 0; position < 100; ++position) EXPECT_LE(reach.first_key(position), reach.first_key(position + 1));
  }
  EXPECT_EQ(Reach{.window = 4294967295u}.first_key(2147483647), 0u);
}

}  // namespace
}  // namespace kvasir::format
