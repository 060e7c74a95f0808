#include "format/kv_format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kvasir::format {
namespace {

constexpr std::uint32_t kCodes = 1u << 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// What a binary16 code stands for, in double arithmetic from the definition.
double f16_value(std::uint32_t code) {
  const std::uint32_t exponent = code >> 10 & 0x1f, mantissa = code & 0x3ff;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

bool f16_is_finite(std::uint32_t code) { return (code & 0x7c00) != 0x7c00; }

TEST(F16, AllCodesDecodeToTheirValueAndBack) {
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    const float decoded = decode_f16(half);
    if (f16_is_finite(code)) {
      ASSERT_EQ(double{decoded}, f16_value(code)) << code;
      ASSERT_EQ(std::signbit(decoded), (code & 0x8000) != 0) << code;
    } else if ((code & 0x3ff) == 0) {
      ASSERT_EQ(decoded, (code & 0x8000) != 0 ? -kInfinity : kInfinity);
    } else {
      ASSERT_TRUE(std::isnan(decoded)) << code;
      ASSERT_EQ(encode_f16(decoded), code | 0x200) << "NaN stays NaN, quiet, with its payload";
      continue;
    }
    ASSERT_EQ(encode_f16(decoded), code);
  }
}

// Between each pair of neighbouring codes: just below, at and just above the midpoint.
TEST(F16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t code = 0; code < 0x7bff; ++code) {
    const double middle = (f16_value(code) + f16_value(code + 1)) / 2;
    const auto at = static_cast<float>(middle);
    ASSERT_EQ(double{at}, middle) << "midpoints are exact in binary32";
    ASSERT_EQ(encode_f16(std::nextafter(at, 0.0f)), code);
    ASSERT_EQ(encode_f16(at), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(encode_f16(std::nextafter(at, kInfinity)), code + 1);
    ASSERT_EQ(encode_f16(-at), (code % 2 == 0 ? code : code + 1) | 0x8000);
  }
}

TEST(F16, OverflowsToInfinityNotToTheLargest) {
  EXPECT_EQ(encode_f16(65504.0f), 0x7bff);
  EXPECT_EQ(encode_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(encode_f16(65520.0f), 0x7c00);
  EXPECT_EQ(encode_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(encode_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(encode_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(encode_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(Bf16, AllCodesDecodeToTheUpperHalfAndBack) {
  for (std::uint32_t code = 0; code < kCodes; ++code) {
    const float decoded = decode_bf16(static_cast<std::uint16_t>(code));
    ASSERT_EQ(bits(decoded), code << 16);
    ASSERT_EQ(encode_bf16(decoded), std::isnan(decoded) ? code | 0x40 : code);
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t code = 0; code < 0x7f80; ++code) {
    const auto below = std::bit_cast<float>(code << 16 | 0x7fffu), at = std::bit_cast<float>(code << 16 | 0x8000u),
               above = std::bit_cast<float>(code << 16 | 0x8001u);
    ASSERT_EQ(encode_bf16(below), code);
    ASSERT_EQ(encode_bf16(at), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(encode_bf16(above), code + 1);
    ASSERT_EQ(encode_bf16(-above), (code + 1) | 0x8000);
  }
  EXPECT_TRUE(std::isnan(decode_bf16(encode_bf16(std::bit_cast<float>(0x7f800001u))))) << "a NaN of low bits only stays one";
}

TEST(KvFormat, NamesAndSizes) {
  for (const KvType type : kKvTypes) EXPECT_EQ(parse_kv_type(to_string(type)), type);
  for (const KvType type : kKvTypes) EXPECT_EQ(is_offered(type), to_string(type) == "f32" || to_string(type).ends_with("f16"));
  EXPECT_EQ(to_string(KvType::bf16), "bf16");
  EXPECT_EQ(parse_kv_type("F16"), std::nullopt);
  EXPECT_EQ(parse_kv_type(""), std::nullopt);
  EXPECT_EQ(element_bytes(KvType::f32), 4u);
  EXPECT_EQ(element_bytes(KvType::f16), 2u);
  EXPECT_EQ(element_bytes(KvType::bf16), 2u);
}

}  // namespace
}  // namespace kvasir::format
