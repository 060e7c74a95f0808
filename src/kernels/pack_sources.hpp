// GGUF's blocks as codes and scales, one struct a type: what kernels/pack.cpp puts in a tile's places.
// Pure functions, any thread. Nothing is rounded: the products of scales made here are exact in f32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "format/kv_format.hpp"
#include "kernels/pack.hpp"
#include "kernels/packed_matrix.hpp"

namespace kvasir::kernels::pack_sources {

static_assert(std::endian::native == std::endian::little, "codes are handled eight bytes at a time, first byte lowest");

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Every byte of a word is `b`.
constexpr std::uint64_t every_byte(std::uint8_t b) { return 0x0101010101010101u * b; }

// Byte i is bit i of `bits`, 0 or 1.
constexpr std::uint64_t spread_bits(std::uint8_t bits) {
  const std::uint64_t picked = every_byte(bits) & 0x8040201008040201u;  // byte i keeps bit i, at its own place
  return ((picked + every_byte(0x7f)) >> 7) & every_byte(1);            // not zero -> 1
}

// One block of one row as a decoder leaves it: 32 codes, a byte each, k ascending, and an output's scales in the form's
// element types: Scales<Half> for d, Scales<float, float> for s and m ...
struct Codes {
  std::uint64_t bytes[4];
};
template <class... Element>
using Scales = std::tuple<Element...>;
using Half = std::uint16_t;  // f16 bits

// 16 bytes of nibbles in GGUF's order: byte j holds code j low and code j + 16 high.
inline Codes nibble_codes(const std::byte* qs) {
  Codes codes;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto word = load<std::uint64_t>(qs + 8 * i);
    codes.bytes[i] = word & every_byte(0x0f);
    codes.bytes[2 + i] = word >> 4 & every_byte(0x0f);
  }
  return codes;
}

// The same with a fifth bit a code: bit k of the 4 bytes at qh.
inline Codes nibble_codes_5(const std::byte* qs, const std::byte* qh) {
  Codes codes = nibble_codes(qs);
  for (std::size_t i = 0; i < 4; ++i) codes.bytes[i] |= spread_bits(load<std::uint8_t>(qh + i)) << 4;
  return codes;
}

// Sub-block j's scale and minimum, 6 bits each, from the 12 bytes that Q4_K and Q5_K pack eight pairs in: bytes 0-3 and
// 4-7 hold pairs 0-3 in their low six bits and, above them, the upper two bits of pairs 4-7; bytes 8-11 the lower four
// bits of pairs 4-7.
inline Scales<float, float> k_scales(const std::byte* super, std::size_t j) {
  const auto* packed = reinterpret_cast<const std::uint8_t*>(super + 4);
  const int scale = j < 4 ? packed[j] & 0x3f : (packed[j + 4] & 0x0f) | (packed[j - 4] >> 2 & 0x30);
  const int min = j < 4 ? packed[j + 4] & 0x3f : packed[j + 4] >> 4 | (packed[j] >> 2 & 0x30);
  const float d = format::decode_f16(load<std::uint16_t>(super));
  const float dmin = format::decode_f16(load<std::uint16_t>(super + 2));
  return {d * static_cast<float>(scale), -(dmin * static_cast<float>(min))};
}

// Sub-block j's two-bit codes from the 64 bytes that Q2_K and Q3_K pack eight of 32 in: four share 32 bytes.
inline Codes two_bits(const std::byte* qs, std::size_t j) {
  Codes codes;
  for (std::size_t i = 0; i < 4; ++i)
    codes.bytes[i] = load<std::uint64_t>(qs + j / 4 * 32 + 8 * i) >> (j % 4 * 2) & every_byte(0x03);
  return codes;
}

// A source: kForm, bytes of a stored block, elements of it, and decoders for block `block` of 32 inputs of a row.
struct Q4_0 {  // d[2] qs[16]
  static constexpr WeightForm kForm = WeightForm::u4_d;
  static constexpr SourceBlock kBlock = {32, 18};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes(p + 2); }
  static Scales<Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p)}; }
};
struct Q4_1 {  // d[2] m[2] qs[16]
  static constexpr WeightForm kForm = WeightForm::u4_dm;
  static constexpr SourceBlock kBlock = {32, 20};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes(p + 4); }
  static Scales<Half, Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p), load<Half>(p + 2)}; }
};
struct Q5_0 {  // d[2] qh[4] qs[16]
  static constexpr WeightForm kForm = WeightForm::u5_d;
  static constexpr SourceBlock kBlock = {32, 22};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes_5(p + 6, p + 2); }
  static Scales<Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p)}; }
};
struct Q5_1 {  // d[2] m[2] qh[4] qs[16]
  static constexpr WeightForm kForm = WeightForm::u5_dm;
  static constexpr SourceBlock kBlock = {32, 24};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes_5(p + 8, p + 4); }
  static Scales<Half, Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p), load<Half>(p + 2)}; }
};
struct Q8_0 {  // d[2] qs[32], signed
  static constexpr WeightForm kForm = WeightForm::u8_d;
  static constexpr SourceBlock kBlock = {32, 34};
  static Codes codes(const std::byte* p, std::size_t) {
    Codes codes;
    for (std::size_t i = 0; i < 4; ++i)
      codes.bytes[i] = load<std::uint64_t>(p + 2 + 8 * i) ^ every_byte(0x80);  // q + 128
    return codes;
  }
  static Scales<Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p)}; }
};
struct Q2_K {  // scales[16] qs[64] d[2] dmin[2]: a scale and a minimum a byte for 16 values; qs as two_bits() says
  static constexpr WeightForm kForm = WeightForm::u2_f2m;
  static constexpr SourceBlock kBlock = {256, 84};
  static Codes codes(const std::byte* p, std::size_t j) { return two_bits(p + 16, j); }
  static Scales<Half, Half, std::uint8_t, std::uint8_t> scales(const std::byte* p, std::size_t j) {
    return {load<Half>(p + 80), load<Half>(p + 82), load<std::uint8_t>(p + 2 * j), load<std::uint8_t>(p + 2 * j + 1)};
  }
};
struct Q3_K {  // hmask[32] qs[64] scales[12] d[2]: bit j of hmask[i] is the third bit of sub-block j's code i
  static constexpr WeightForm kForm = WeightForm::u3_f2;
  static constexpr SourceBlock kBlock = {256, 110};
  static Codes codes(const std::byte* p, std::size_t j) {
    Codes codes = two_bits(p + 32, j);
    for (std::size_t i = 0; i < 4; ++i) codes.bytes[i] |= (load<std::uint64_t>(p + 8 * i) >> j & every_byte(1)) << 2;
    return codes;
  }
  // Scale `at` of 16, 6 bits with 32 for zero: the lower four in the nibbles of bytes 0-7 (0-7 low, 8-15 high), the
  // upper two in bytes 8-11, scales at, at + 4, at + 8 and at + 12 in one byte.
  static std::int8_t scale(const std::byte* packed, std::size_t at) {
    const int low = load<std::uint8_t>(packed + at % 8) >> (at / 8 * 4) & 0x0f;
    const int high = load<std::uint8_t>(packed + 8 + at % 4) >> (at / 4 * 2) & 0x03;
    return static_cast<std::int8_t>((low | high << 4) - 32);
  }
  static Scales<Half, std::int8_t, std::int8_t> scales(const std::byte* p, std::size_t j) {
    return {load<Half>(p + 108), scale(p + 96, 2 * j), scale(p + 96, 2 * j + 1)};
  }
};
struct Q4_K {  // d[2] dmin[2] scales[12] qs[128]: sub-blocks 2i and 2i+1 share 32 bytes, low and high nibbles
  static constexpr WeightForm kForm = WeightForm::u4_sm;
  static constexpr SourceBlock kBlock = {256, 144};
  static Codes codes(const std::byte* p, std::size_t j) {
    Codes codes;
    for (std::size_t i = 0; i < 4; ++i)
      codes.bytes[i] = load<std::uint64_t>(p + 16 + j / 2 * 32 + 8 * i) >> (j % 2 * 4) & every_byte(0x0f);
    return codes;
  }
  static Scales<float, float> scales(const std::byte* p, std::size_t j) { return k_scales(p, j); }
};
struct Q5_K {  // d[2] dmin[2] scales[12] qh[32] qs[128]: qs as Q4_K's; bit j of qh[i] is sub-block j's
  static constexpr WeightForm kForm = WeightForm::u5_sm;
  static constexpr SourceBlock kBlock = {256, 176};
  static Codes codes(const std::byte* p, std::size_t j) {
    Codes codes;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t low = load<std::uint64_t>(p + 48 + j / 2 * 32 + 8 * i) >> (j % 2 * 4) & every_byte(0x0f);
      codes.bytes[i] = low | (load<std::uint64_t>(p + 16 + 8 * i) >> j & every_byte(1)) << 4;
    }
    return codes;
  }
  static Scales<float, float> scales(const std::byte* p, std::size_t j) { return k_scales(p, j); }
};
struct Q6_K {  // ql[128] qh[64] scales[16] d[2]: each half of 128 values has 64 bytes of ql and 32 of qh
  static constexpr WeightForm kForm = WeightForm::u6_s2;
  static constexpr SourceBlock kBlock = {256, 210};
  static Codes codes(const std::byte* p, std::size_t j) {
    const std::size_t half = j / 4, group = j % 4;
    Codes codes;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto low = load<std::uint64_t>(p + half * 64 + group % 2 * 32 + 8 * i);
      const auto high = load<std::uint64_t>(p + 128 + half * 32 + 8 * i);
      codes.bytes[i] = (low >> (group / 2 * 4) & every_byte(0x0f)) | (high >> (group * 2) & every_byte(3)) << 4;
    }
    return codes;
  }
  static Scales<float, float> scales(const std::byte* p, std::size_t j) {
    const float d = format::decode_f16(load<std::uint16_t>(p + 208));
    return {d * static_cast<float>(load<std::int8_t>(p + 192 + 2 * j)),
            d * static_cast<float>(load<std::int8_t>(p + 193 + 2 * j))};
  }
};

struct IQ4_NL {  // d[2] qs[16]
  static constexpr WeightForm kForm = WeightForm::t4_d;
  static constexpr SourceBlock kBlock = {32, 18};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes(p + 2); }
  static Scales<Half> scales(const std::byte* p, std::size_t) { return {load<Half>(p)}; }
};
struct IQ4_XS {  // d[2] scales_h[2] scales_l[4] qs[128]: a sub-block has 16 bytes of qs and a scale of 4 + 2 bits, minus 32
  static constexpr WeightForm kForm = WeightForm::t4_s;
  static constexpr SourceBlock kBlock = {256, 136};
  static Codes codes(const std::byte* p, std::size_t j) { return nibble_codes(p + 8 + 16 * j); }
  static Scales<float> scales(const std::byte* p, std::size_t j) {
    const int low = load<std::uint8_t>(p + 4 + j / 2) >> (j % 2 * 4) & 0x0f;
    const int high = load<std::uint16_t>(p + 2) >> (j * 2) & 0x03;
    return {format::decode_f16(load<Half>(p)) * static_cast<float>((low | high << 4) - 32)};
  }
};

}  // namespace kvasir::kernels::pack_sources
