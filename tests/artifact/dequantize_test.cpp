// Blocks made by hand: codes and scales of our choice put where GGUF says, and the values that they then stand for.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "artifact/tensor_type.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::uint16_t kD = 0x3555;         // f16 0.333251953125 = 1365 / 4096
constexpr std::uint16_t kDmin = 0xb266;      // f16 -0.199951171875 = -1638 / 8192
constexpr float kDValue = 1365.0f / 4096.0f;
constexpr float kDminValue = -1638.0f / 8192.0f;

constexpr std::array<int, 16> kNonlinear = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Codes that take every value below `bound` in every group of 16, in an order that moves from group to group.
unsigned code_of(unsigned i, unsigned bound) { return (i * 7 + i / 16 * 5 + i / 64) % bound; }

class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_(bytes) {}
  void add(std::size_t at, unsigned bits, unsigned shift = 0) { bytes_[at] |= static_cast<std::byte>(bits << shift); }
  void f16(std::size_t at, std::uint16_t bits) { std::memcpy(bytes_.data() + at, &bits, sizeof bits); }

  void expect(TensorType type, const std::vector<float>& wanted) const {
    ASSERT_EQ(bytes_.size(), block_bytes(type));
    ASSERT_EQ(wanted.size(), block_elements(type));
    std::vector<float> got(wanted.size());
    dequantize(type, bytes_, got);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(wanted[i]))
          << to_string(type) << " value " << i << ": " << got[i] << ", not " << wanted[i];
  }

 private:
  std::vector<std::byte> bytes_;
};

// Where value i's two bits stand in Q2_K's and Q3_K's 64 bytes.
void add_two_bits(Block& block, std::size_t qs, unsigned i, unsigned bits) {
  block.add(qs + i / 128 * 32 + i % 32, bits, i % 128 / 32 * 2);
}

TEST(DequantizeByHand, Q2_K) {
  Block block(84);
  block.f16(80, kD);
  block.f16(82, kDmin);
  std::vector<float> wanted(256);
  for (unsigned group = 0; group < 16; ++group) block.add(group, group | (15 - group) << 4);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned code = code_of(i, 4), scale = i / 16, min = 15 - scale;
    add_two_bits(block, 16, i, code);
    wanted[i] = kDValue * static_cast<float>(scale) * static_cast<float>(code) - kDminValue * static_cast<float>(min);
  }
  block.expect(TensorType::q2_k, wanted);
}

TEST(DequantizeByHand, Q3_K) {
  Block block(110);
  block.f16(108, kD);
  std::vector<float> wanted(256);
  const auto scale_of = [](unsigned group) { return group * 29 % 64; };  // 0 to 63, zero at 32
  for (unsigned group = 0; group < 16; ++group) {
    block.add(96 + group % 8, scale_of(group) & 15, group < 8 ? 0 : 4);
    block.add(96 + 8 + group % 4, scale_of(group) >> 4, group / 4 * 2);
  }
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned code = code_of(i, 8);  // -4 to 3, zero at 4
    add_two_bits(block, 32, i, code & 3);
    block.add(i % 32, code >> 2, i / 32);
    wanted[i] = kDValue * (static_cast<float>(scale_of(i / 16)) - 32) * (static_cast<float>(code) - 4);
  }
  block.expect(TensorType::q3_k, wanted);
}

TEST(DequantizeByHand, IQ4_NL) {
  Block block(18);
  block.f16(0, kD);
  std::vector<float> wanted(32);
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned code = code_of(i, 16);
    block.add(2 + i % 16, code, i < 16 ? 0 : 4);
    wanted[i] = kDValue * static_cast<float>(kNonlinear[code]);
  }
  block.expect(TensorType::iq4_nl, wanted);
}

TEST(DequantizeByHand, IQ4_XS) {
  Block block(136);
  block.f16(0, kD);
  std::vector<float> wanted(256);
  const auto scale_of = [](unsigned sub) { return (sub * 21 + 3) % 64; };  // 0 to 63, zero at 32
  for (unsigned sub = 0; sub < 8; ++sub) {
    block.add(2 + sub / 4, scale_of(sub) >> 4, sub % 4 * 2);
    block.add(4 + sub / 2, scale_of(sub) & 15, sub % 2 * 4);
  }
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned code = code_of(i, 16);
    block.add(8 + i / 32 * 16 + i % 16, code, i % 32 < 16 ? 0 : 4);
    wanted[i] = kDValue * (static_cast<float>(scale_of(i / 32)) - 32) * static_cast<float>(kNonlinear[code]);
  }
  block.expect(TensorType::iq4_xs, wanted);
}

}  // namespace
}  // namespace kvasir::artifact
