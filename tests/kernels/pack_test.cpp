// Packing keeps every value of the file: unpacked rows equal GGUF dequantization bit for bit.
#include "kernels/pack.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "artifact/tensor_type.hpp"
#include "tests/kernels/support.hpp"

namespace kvasir::kernels::test {
namespace {

artifact::TensorType tensor_type(SourceEncoding encoding) {
  using artifact::TensorType;
  switch (encoding) {
    case SourceEncoding::f32:
      return TensorType::f32;
    case SourceEncoding::f16:
      return TensorType::f16;
    case SourceEncoding::bf16:
      return TensorType::bf16;
    case SourceEncoding::q4_0:
      return TensorType::q4_0;
    case SourceEncoding::q4_1:
      return TensorType::q4_1;
    case SourceEncoding::q5_0:
      return TensorType::q5_0;
    case SourceEncoding::q5_1:
      return TensorType::q5_1;
    case SourceEncoding::q8_0:
      return TensorType::q8_0;
    case SourceEncoding::q4_k:
      return TensorType::q4_k;
    case SourceEncoding::q5_k:
      return TensorType::q5_k;
    case SourceEncoding::q6_k:
      return TensorType::q6_k;
    case SourceEncoding::q2_k:
      return TensorType::q2_k;
    case SourceEncoding::q3_k:
      return TensorType::q3_k;
    case SourceEncoding::iq4_nl:
      return TensorType::iq4_nl;
    case SourceEncoding::iq4_xs:
      return TensorType::iq4_xs;
  }
  return TensorType::f32;
}

class PackEveryClass : public EveryClass {};
KVASIR_FOR_EVERY_CLASS(PackEveryClass);

TEST_P(PackEveryClass, UnpackedRowsEqualGgufDequantization) {
  for (SourceEncoding encoding : all_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    const bool any_k = source_block(encoding).elements == 1;
    const std::size_t n = 70;
    const std::size_t k = any_k ? 77 : 512;
    const std::vector<std::byte> source = random_source(encoding, n, k, 11);
    const Matrix matrix = pack(encoding, n, k, source);
    const std::size_t row_bytes = source_row_bytes(encoding, k);
    for (std::size_t row = 0; row < n; ++row) {
      std::vector<float> wanted(k);
      artifact::dequantize(tensor_type(encoding), std::span(source).subspan(row * row_bytes, row_bytes), wanted);
      std::vector<float> got(k);
      set().unpack_row(matrix.view, row, got.data());
      const Comparison c = compare(got, wanted);
      ASSERT_TRUE(c) << "row " << row << ": " << c.message;
    }
  }
}

TEST(Pack, SourceBlocksAreGgufs) {
  for (SourceEncoding encoding : all_encodings()) {
    EXPECT_EQ(source_block(encoding).elements, artifact::block_elements(tensor_type(encoding))) << name_of(encoding);
    EXPECT_EQ(source_block(encoding).bytes, artifact::block_bytes(tensor_type(encoding))) << name_of(encoding);
  }
}

TEST(Pack, PaddingOutputsAreZeroBytesWhateverWasThere) {
  for (SourceEncoding encoding : all_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    const std::size_t k = 256;
    const WeightForm form = form_of(encoding);
    const std::vector<std::byte> source = random_source(encoding, 5, k, 3);
    std::vector<std::byte> dirty(tile_bytes(form, k), std::byte{0xff});
    std::vector<std::byte> clean(tile_bytes(form, k), std::byte{0});
    pack_tile(encoding, source.data(), source_row_bytes(encoding, k), 5, k, dirty.data());
    pack_tile(encoding, source.data(), source_row_bytes(encoding, k), 5, k, clean.data());
    EXPECT_EQ(dirty, clean);
    // With five rows in 32, most of the tile is padding.
    const auto zeros = static_cast<std::size_t>(std::count(dirty.begin(), dirty.end(), std::byte{0}));
    EXPECT_GE(zeros, dirty.size() * 27 / 32);
  }
}

// The layout comment of packed_matrix.hpp, place by place: one code set, its byte and bit found where it says.
TEST(Pack, OneCodeStandsWhereTheLayoutSays) {
  const std::size_t k = 64;
  const std::size_t row_bytes = source_row_bytes(SourceEncoding::q5_0, k);
  for (std::size_t output : {std::size_t{0}, std::size_t{17}, std::size_t{31}})
    for (std::size_t input = 0; input < k; ++input) {
      std::vector<std::byte> source(32 * row_bytes, std::byte{0});
      std::byte* block = source.data() + output * row_bytes + input / 32 * 22;
      const std::size_t in_block = input % 32;
      block[6 + in_block % 16] = in_block < 16 ? std::byte{0x0b} : std::byte{0xb0};  // low four bits 1011
      block[2 + in_block / 8] = static_cast<std::byte>(1u << (in_block % 8));        // and the fifth
      std::vector<std::byte> tile(tile_bytes(WeightForm::u5_d, k));
      pack_tile(SourceEncoding::q5_0, source.data(), row_bytes, 32, k, tile.data());

      const std::size_t half_bytes = traits(WeightForm::u5_d).half_bytes();
      const std::byte* half = tile.data() + (input / 32 * 2 + output / 16) * half_bytes;
      const std::size_t j = in_block % 16 / 4, i = in_block % 4, h = in_block / 16, lane = output % 16;
      EXPECT_EQ(half[j * 64 + lane * 4 + i], h == 0 ? std::byte{0x0b} : std::byte{0xb0});
      EXPECT_EQ(half[256 + lane * 4 + i], static_cast<std::byte>(1u << (2 * j + h)));
      EXPECT_EQ(std::count(tile.begin(), tile.end(), std::byte{0}), static_cast<std::ptrdiff_t>(tile.size() - 2));
    }
}

// The same for two planes of fewer bits, and for scales kept as factors.
TEST(Pack, ThreeBitCodesAndTheirFactorsStandWhereTheLayoutSays) {
  const std::size_t k = 256, row_bytes = source_row_bytes(SourceEncoding::q3_k, k);
  const std::size_t half_bytes = traits(WeightForm::u3_f2).half_bytes();
  for (std::size_t output : {std::size_t{0}, std::size_t{17}, std::size_t{31}})
    for (std::size_t input = 0; input < k; ++input) {
      std::vector<std::byte> source(32 * row_bytes, std::byte{0});
      std::byte* block = source.data() + output * row_bytes;
      block[32 + input / 128 * 32 + input % 32] = static_cast<std::byte>(2u << (input % 128 / 32 * 2));  // low bits 10
      block[input % 32] = static_cast<std::byte>(1u << (input / 32));                                    // and the third
      block[108] = std::byte{0x34};
      block[109] = std::byte{0x12};
      std::vector<std::byte> tile(tile_bytes(WeightForm::u3_f2, k));
      pack_tile(SourceEncoding::q3_k, source.data(), row_bytes, 32, k, tile.data());

      const std::byte* half = tile.data() + (input / 32 * 2 + output / 16) * half_bytes;
      const std::size_t i = input % 4, lane = output % 16, number = 2 * (input % 16 / 4) + input % 32 / 16;
      EXPECT_EQ(half[number / 4 * 64 + lane * 4 + i], static_cast<std::byte>(2u << (number % 4 * 2)));
      EXPECT_EQ(half[128 + lane * 4 + i], static_cast<std::byte>(1u << number));
      EXPECT_EQ(std::count(half, half + 192, std::byte{0}), 190);
      EXPECT_EQ(half[192 + lane * 2], std::byte{0x34});
      EXPECT_EQ(half[192 + lane * 2 + 1], std::byte{0x12});
      EXPECT_EQ(half[192 + 32 + lane], std::byte{0xe0}) << "a stored scale of 0 is -32";
      EXPECT_EQ(half[192 + 48 + lane], std::byte{0xe0});
    }
}

}  // namespace
}  // namespace kvasir::kernels::test
