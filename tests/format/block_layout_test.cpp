#include "format/block_layout.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace kvasir::format {
namespace {

CacheGroup group(std::uint32_t layers, std::uint32_t kv_heads, std::uint32_t head_dim, KvFormat format, std::uint32_t block_tokens) {
  CacheGroup g;
  for (std::uint32_t l = 0; l < layers; ++l) g.layers.push_back(l);
  g.kv_heads = kv_heads;
  g.head_dim = head_dim;
  g.format = format;
  g.block_tokens = block_tokens;
  return g;
}

// Every element of every row of a block has bytes of its own, and together they are the whole block.
TEST(BlockLayout, ElementsTileTheBlockWithoutOverlapOrGap) {
  for (const std::uint32_t tokens : {16u, 32u, 64u, 128u, 256u}) {
    for (const KvFormat format : {KvFormat{KvType::f16, KvType::f16}, KvFormat{KvType::f32, KvType::bf16}, KvFormat{KvType::bf16, KvType::f32}}) {
      for (const std::uint32_t head_dim : {8u, 24u, 64u}) {
        const auto layout = BlockLayout::create(group(2, 3, head_dim, format, tokens));
        ASSERT_TRUE(layout.ok());
        std::vector<int> uses(layout->block_bytes());
        const auto use = [&](std::size_t at, std::size_t bytes) {
          ASSERT_LE(at + bytes, uses.size());
          for (std::size_t i = 0; i < bytes; ++i) ++uses[at + i];
        };
        const std::size_t k_bytes = element_bytes(format.k), v_bytes = element_bytes(format.v);
        for (std::uint32_t layer = 0; layer < 2; ++layer)
          for (std::uint32_t head = 0; head < 3; ++head)
            for (std::uint32_t row = 0; row < tokens; ++row) {
              for (std::uint32_t c = 0; c < head_dim; ++c)
                use(layout->k_offset(layer, head, row) + c * kKeysPerTile * k_bytes, k_bytes);
              use(layout->v_offset(layer, head, row), head_dim * v_bytes);
            }
        ASSERT_EQ(uses, std::vector<int>(uses.size(), 1)) << tokens << " tokens, head_dim " << head_dim;
      }
    }
  }
}

TEST(BlockLayout, SizesAreWhatTheFormatSays) {
  const auto layout = BlockLayout::create(group(30, 3, 64, {KvType::f16, KvType::f32}, 32));
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->bytes_per_token(), 30u * 3 * 64 * (2 + 4));
  EXPECT_EQ(layout->block_bytes(), 32 * layout->bytes_per_token());
  EXPECT_EQ(layout->layer_bytes(), layout->block_bytes() / 30);
  EXPECT_EQ(layout->head_bytes(), layout->layer_bytes() / 3);
}

TEST(BlockLayout, VRowsMayHaveAnotherWidthOrNone) {
  CacheGroup wide = group(2, 4, 192, {KvType::f16, KvType::f16}, 32);
  wide.v_dim = 128;
  EXPECT_EQ(BlockLayout::create(wide)->bytes_per_token(), 2u * 4 * (192 + 128) * 2);
  CacheGroup latent = group(60, 1, 576, {KvType::int8, KvType::int8}, 64);
  latent.v_dim = 0;
  EXPECT_EQ(BlockLayout::create(latent)->bytes_per_token(), 60u * (576 + 4)) << "K and V are one: one scale";
  latent.v_dim = 12;
  EXPECT_EQ(BlockLayout::create(latent).error().code, ErrorCode::unsupported);
}

TEST(BlockLayout, ScalesLieBesideTheRowsOfTheirBlock) {
  const auto layout = BlockLayout::create(group(1, 2, 64, {KvType::int4, KvType::int8}, 16));
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->v_start(), 16u * (32 + 4));
  EXPECT_EQ(layout->head_bytes(), 16u * (32 + 4 + 64 + 4));
  EXPECT_EQ(layout->bytes_per_token(), 2u * (32 + 4 + 64 + 4));
}

TEST(BlockLayout, PartsStartAtMultiplesOf32Bytes) {
  for (const std::uint32_t head_dim : {8u, 16u, 40u, 80u}) {
    const auto layout = BlockLayout::create(group(3, 2, head_dim, {KvType::f16, KvType::bf16}, 16));
    ASSERT_TRUE(layout.ok());
    for (const std::size_t part : {layout->block_bytes(), layout->layer_bytes(), layout->head_bytes(), layout->v_start(),
                                   layout->k_tile_bytes()})
      EXPECT_EQ(part % 32, 0u) << head_dim;
  }
}

TEST(BlockLayout, WrongGroupsAreRefused) {
  for (const std::uint32_t tokens : {0u, 1u, 8u, 17u, 48u, 512u}) {
    const auto layout = BlockLayout::create(group(1, 1, 8, {}, tokens));
    ASSERT_FALSE(layout.ok()) << tokens;
    EXPECT_NE(layout.error().message.find("16, 32, 64, 128 and 256"), std::string::npos);
  }
  for (const std::uint32_t head_dim : {0u, 4u, 12u, 65u})
    EXPECT_EQ(BlockLayout::create(group(1, 1, head_dim, {}, 32)).error().code, ErrorCode::unsupported);
  EXPECT_FALSE(BlockLayout::create(group(0, 1, 8, {}, 32)).ok());
  EXPECT_FALSE(BlockLayout::create(group(1, 0, 8, {}, 32)).ok());
  constexpr std::uint32_t kLarge = std::numeric_limits<std::uint32_t>::max() - 7;
  const auto overflow = BlockLayout::create(group(8, kLarge, kLarge, {KvType::f32, KvType::f32}, 256));
  ASSERT_FALSE(overflow.ok());
  EXPECT_NE(overflow.error().message.find("64 bits"), std::string::npos);
}

TEST(BlockAddressing, BlocksLieInTheirSuperpagesOneBehindTheOther) {
  std::vector<std::byte> arena(1000);
  const BlockAddressing addressing{.base = arena.data(), .superpage_bytes = 250, .blocks_per_superpage = 3, .block_bytes = 80};
  EXPECT_EQ(addressing.address(0) - arena.data(), 0);
  EXPECT_EQ(addressing.address(2) - arena.data(), 160);
  EXPECT_EQ(addressing.address(3) - arena.data(), 250) << "the superpage's tail is skipped";
  EXPECT_EQ(addressing.address(11) - arena.data(), 750 + 160);
}

}  // namespace
}  // namespace kvasir::format
