#include "artifact/tensor_type.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

namespace kvasir::artifact {
namespace {

constexpr std::array kAll = {TensorType::f32,  TensorType::f16,  TensorType::bf16, TensorType::q4_0,
                             TensorType::q4_1, TensorType::q5_0, TensorType::q5_1, TensorType::q8_0,
                             TensorType::q2_k, TensorType::q3_k, TensorType::q4_k, TensorType::q5_k,
                             TensorType::q6_k, TensorType::iq4_nl, TensorType::iq4_xs};

std::vector<std::byte> read_golden() {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/data/gguf/dequantize.bin", std::ios::binary);
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

template <class T>
T take(std::span<const std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

TEST(Dequantize, EqualsThePythonPackageBitForBit) {
  const std::vector<std::byte> golden = read_golden();
  std::span<const std::byte> rest = golden;
  std::set<TensorType> seen;
  while (!rest.empty()) {
    const auto type = tensor_type_from_ggml(take<std::uint32_t>(rest));
    ASSERT_TRUE(type.ok());
    seen.insert(*type);
    const std::size_t blocks = take<std::uint32_t>(rest);
    const auto source = rest.first(blocks * block_bytes(*type));
    rest = rest.subspan(source.size());
    std::vector<float> values(blocks * block_elements(*type));
    dequantize(*type, source, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto expected = take<float>(rest);
      ASSERT_TRUE(same(values[i], expected)) << to_string(*type) << " value " << i << ": " << values[i] << ", not " << expected;
    }
  }
  EXPECT_EQ(seen, std::set<TensorType>(kAll.begin(), kAll.end()));
}

TEST(Dequantize, TakesAnyNumberOfBlocksAtAnyAddress) {
  const std::vector<std::byte> golden = read_golden();
  std::vector<std::byte> shifted(1);  // one byte off whatever alignment the vector has
  shifted.insert(shifted.end(), golden.begin(), golden.begin() + 3 * 144);
  std::vector<float> aligned(3 * 256), unaligned(3 * 256);
  dequantize(TensorType::q4_k, std::span(golden).first(3 * 144), aligned);
  dequantize(TensorType::q4_k, std::span(shifted).subspan(1), unaligned);
  EXPECT_EQ(std::memcmp(aligned.data(), unaligned.data(), aligned.size() * sizeof(float)), 0);
  dequantize(TensorType::q4_k, {}, {});
}

TEST(DequantizeDeathTest, ChecksThatSourceAndValuesAgree) {
  const std::vector<std::byte> block(144);
  std::vector<float> values(256);
  EXPECT_DEATH(dequantize(TensorType::q4_k, std::span(block).first(143), values), "same number of blocks");
  EXPECT_DEATH(dequantize(TensorType::q4_k, block, std::span(values).first(255)), "whole blocks");
}

TEST(TensorType, NumbersNamesAndSizesAreGgmls) {
  const auto q4_k = tensor_type_from_ggml(12);
  ASSERT_TRUE(q4_k.ok());
  EXPECT_EQ(*q4_k, TensorType::q4_k);
  EXPECT_EQ(to_string(*q4_k), "Q4_K");
  EXPECT_EQ(block_elements(TensorType::f32), 1u);
  EXPECT_EQ(block_bytes(TensorType::f32), 4u);
  const std::vector<std::uint32_t> bytes = {4, 2, 2, 18, 20, 22, 24, 34, 84, 110, 144, 176, 210, 18, 136};
  for (std::size_t i = 0; i < kAll.size(); ++i) EXPECT_EQ(block_bytes(kAll[i]), bytes[i]) << to_string(kAll[i]);
  for (const TensorType type : kAll) EXPECT_EQ(*tensor_type_from_ggml(static_cast<std::uint32_t>(type)), type);
}

TEST(TensorType, OtherTypesAreRefusedByTheirName) {
  for (const auto& [number, name] : {std::pair{21u, "IQ3_S"}, {16u, "IQ2_XXS"}, {24u, "I8"}, {39u, "MXFP4"}}) {
    const auto type = tensor_type_from_ggml(number);
    ASSERT_FALSE(type.ok());
    EXPECT_EQ(type.error().code, ErrorCode::unsupported);
    EXPECT_NE(type.error().message.find(name), std::string::npos) << type.error().message;
    EXPECT_NE(type.error().message.find("Q4_K"), std::string::npos) << "names what is offered";
  }
  EXPECT_NE(tensor_type_from_ggml(4711).error().message.find("4711"), std::string::npos);
}

}  // namespace
}  // namespace kvasir::artifact
