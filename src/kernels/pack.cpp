#include "kernels/pack.hpp"

#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "format/kv_format.hpp"

namespace kvasir::kernels {
namespace {

static_assert(std::endian::native == std::endian::little, "codes are handled eight bytes at a time, first byte lowest");

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Every byte of a word is `b`.
constexpr std::uint64_t every_byte(std::uint8_t b) { return 0x0101010101010101u * b; }

// Byte i is bit i of `bits`, 0 or 1.
constexpr std::uint64_t spread_bits(std::uint8_t bits) {
  const std::uint64_t picked = every_byte(bits) & 0x8040201008040201u;  // byte i keeps bit i, at its own place
  return ((picked + every_byte(0x7f)) >> 7) & every_byte(1);            // not zero -> 1
}

// One block of one row as a decoder leaves it: 32 codes, a byte each, k ascending, and up to two scales an output in
// the form's element type (f16 bits or f32): d | d, m | s, m | s0, s1.
struct Codes {
  std::uint64_t bytes[4];
};
struct ScalePair {
  float first, second;
};
struct HalfPair {
  std::uint16_t first, second;
};

// 16 bytes of nibbles in GGUF's order: byte j holds code j low and code j + 16 high.
Codes nibble_codes(const std::byte* qs) {
  Codes codes;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto word = load<std::uint64_t>(qs + 8 * i);
    codes.bytes[i] = word & every_byte(0x0f);
    codes.bytes[2 + i] = word >> 4 & every_byte(0x0f);
  }
  return codes;
}

// The same with a fifth bit a code: bit k of the 4 bytes at qh.
Codes nibble_codes_5(const std::byte* qs, const std::byte* qh) {
  Codes codes = nibble_codes(qs);
  for (std::size_t i = 0; i < 4; ++i) codes.bytes[i] |= spread_bits(load<std::uint8_t>(qh + i)) << 4;
  return codes;
}

// Sub-block j's scale and minimum, 6 bits each, from the 12 bytes that Q4_K and Q5_K pack eight pairs in: bytes 0-3 and
// 4-7 hold pairs 0-3 in their low six bits and, above them, the upper two bits of pairs 4-7; bytes 8-11 the lower four
// bits of pairs 4-7.
ScalePair k_scales(const std::byte* super, std::size_t j) {
  const auto* packed = reinterpret_cast<const std::uint8_t*>(super + 4);
  const int scale = j < 4 ? packed[j] & 0x3f : (packed[j + 4] & 0x0f) | (packed[j - 4] >> 2 & 0x30);
  const int min = j < 4 ? packed[j + 4] & 0x3f : packed[j + 4] >> 4 | (packed[j] >> 2 & 0x30);
  const float d = format::decode_f16(load<std::uint16_t>(super));
  const float dmin = format::decode_f16(load<std::uint16_t>(super + 2));
  return {d * static_cast<float>(scale), -(dmin * static_cast<float>(min))};
}

// A source: kForm, bytes of a stored block, elements of it, and decoders for block `block` of 32 inputs of a row.
struct Q4_0 {  // d[2] qs[16]
  static constexpr WeightForm kForm = WeightForm::u4_d;
  static constexpr SourceBlock kBlock = {32, 18};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes(p + 2); }
  static HalfPair scales(const std::byte* p, std::size_t) { return {load<std::uint16_t>(p), 0}; }
};
struct Q4_1 {  // d[2] m[2] qs[16]
  static constexpr WeightForm kForm = WeightForm::u4_dm;
  static constexpr SourceBlock kBlock = {32, 20};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes(p + 4); }
  static HalfPair scales(const std::byte* p, std::size_t) {
    return {load<std::uint16_t>(p), load<std::uint16_t>(p + 2)};
  }
};
struct Q5_0 {  // d[2] qh[4] qs[16]
  static constexpr WeightForm kForm = WeightForm::u5_d;
  static constexpr SourceBlock kBlock = {32, 22};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes_5(p + 6, p + 2); }
  static HalfPair scales(const std::byte* p, std::size_t) { return {load<std::uint16_t>(p), 0}; }
};
struct Q5_1 {  // d[2] m[2] qh[4] qs[16]
  static constexpr WeightForm kForm = WeightForm::u5_dm;
  static constexpr SourceBlock kBlock = {32, 24};
  static Codes codes(const std::byte* p, std::size_t) { return nibble_codes_5(p + 8, p + 4); }
  static HalfPair scales(const std::byte* p, std::size_t) {
    return {load<std::uint16_t>(p), load<std::uint16_t>(p + 2)};
  }
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
  static HalfPair scales(const std::byte* p, std::size_t) { return {load<std::uint16_t>(p), 0}; }
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
  static ScalePair scales(const std::byte* p, std::size_t j) { return k_scales(p, j); }
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
  static ScalePair scales(const std::byte* p, std::size_t j) { return k_scales(p, j); }
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
  static ScalePair scales(const std::byte* p, std::size_t j) {
    const float d = format::decode_f16(load<std::uint16_t>(p + 208));
    return {d * static_cast<float>(load<std::int8_t>(p + 192 + 2 * j)),
            d * static_cast<float>(load<std::int8_t>(p + 193 + 2 * j))};
  }
};

// 32 codes of one output to their places in a half-block (kernels/packed_matrix.hpp). `to`: the half-block + 4 * lane.
template <int kBits>
void put_codes(const Codes& codes, std::byte* to) {
  constexpr std::size_t kVector = 64;
  constexpr std::uint32_t kOnes = 0x01010101u;
  std::uint32_t word[8];  // word[4h + j]: the four codes of k = 16h + 4j ..
  std::memcpy(word, codes.bytes, sizeof word);
  if constexpr (kBits == 8) {
    for (std::size_t j = 0; j < 8; ++j) store(to + j * kVector, word[j]);
    return;
  }
  for (std::size_t j = 0; j < 4; ++j)
    store(to + j * kVector, (word[j] & 0x0f * kOnes) | (word[4 + j] & 0x0f * kOnes) << 4);
  std::byte* high = to + 4 * kVector;
  if constexpr (kBits == 5) {
    std::uint32_t plane = 0;
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t h = 0; h < 2; ++h) plane |= (word[4 * h + j] >> 4 & kOnes) << (2 * j + h);
    store(high, plane);
  }
  if constexpr (kBits == 6) {
    std::uint32_t plane[2] = {0, 0};
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t h = 0; h < 2; ++h) plane[j / 2] |= (word[4 * h + j] >> 4 & 3 * kOnes) << (2 * (2 * (j % 2) + h));
    store(high, plane[0]);
    store(high + kVector, plane[1]);
  }
}

template <class Source>
void pack_integer(const std::byte* rows, std::size_t row_bytes, std::size_t valid_rows, std::size_t k,
                  std::byte* tile) {
  constexpr FormTraits kTraits = traits(Source::kForm);
  constexpr std::size_t kSubBlocks = Source::kBlock.elements / kBlockInputs;
  for (std::size_t block = 0; block < k / kBlockInputs; ++block)
    for (std::size_t output = 0; output < valid_rows; ++output) {
      const std::byte* from = rows + output * row_bytes + block / kSubBlocks * Source::kBlock.bytes;
      std::byte* half = tile + (block * 2 + output / kHalfOutputs) * kTraits.half_bytes();
      const std::size_t lane = output % kHalfOutputs;
      put_codes<kTraits.bits>(Source::codes(from, block % kSubBlocks), half + 4 * lane);

      const auto pair = Source::scales(from, block % kSubBlocks);
      std::byte* scales = half + kTraits.code_bytes;
      store(scales + lane * sizeof pair.first, pair.first);
      if constexpr (kTraits.scales != ScaleKind::d)
        store(scales + (kHalfOutputs + lane) * sizeof pair.second, pair.second);
    }
}

template <class Element>
void pack_float(const std::byte* rows, std::size_t row_bytes, std::size_t valid_rows, std::size_t k, std::byte* tile) {
  constexpr std::size_t kStep = 64 / sizeof(Element);  // one cache line of every row at a time
  for (std::size_t first = 0; first < k; first += kStep)
    for (std::size_t output = 0; output < valid_rows; ++output)
      for (std::size_t i = first; i < k && i < first + kStep; ++i)
        store(tile + (i * kTileOutputs + output) * sizeof(Element),
              load<Element>(rows + output * row_bytes + i * sizeof(Element)));
}

using Packer = void (*)(const std::byte* rows, std::size_t row_bytes, std::size_t valid_rows, std::size_t k,
                        std::byte* tile);
struct Encoding {
  WeightForm form;
  SourceBlock block;
  Packer pack;
};

template <class Source>
constexpr Encoding integer() {
  return {Source::kForm, Source::kBlock, pack_integer<Source>};
}

Encoding encoding_of(SourceEncoding encoding) {
  switch (encoding) {
    case SourceEncoding::f32:
      return {WeightForm::f32, {1, 4}, pack_float<std::uint32_t>};
    case SourceEncoding::f16:
      return {WeightForm::f16, {1, 2}, pack_float<std::uint16_t>};
    case SourceEncoding::bf16:
      return {WeightForm::bf16, {1, 2}, pack_float<std::uint16_t>};
    case SourceEncoding::q4_0:
      return integer<Q4_0>();
    case SourceEncoding::q4_1:
      return integer<Q4_1>();
    case SourceEncoding::q5_0:
      return integer<Q5_0>();
    case SourceEncoding::q5_1:
      return integer<Q5_1>();
    case SourceEncoding::q8_0:
      return integer<Q8_0>();
    case SourceEncoding::q4_k:
      return integer<Q4_K>();
    case SourceEncoding::q5_k:
      return integer<Q5_K>();
    case SourceEncoding::q6_k:
      return integer<Q6_K>();
  }
  check_failed(__FILE__, __LINE__, "encoding", "an encoding is one of the enumerators");
}

}  // namespace

WeightForm form_of(SourceEncoding encoding) { return encoding_of(encoding).form; }

SourceBlock source_block(SourceEncoding encoding) { return encoding_of(encoding).block; }

void pack_tile(SourceEncoding encoding, const std::byte* rows, std::size_t row_bytes, std::size_t valid_rows,
               std::size_t k, std::byte* tile) {
  const Encoding e = encoding_of(encoding);
  KV_CHECK(valid_rows >= 1 && valid_rows <= kTileOutputs, "a tile has 1 to 32 rows");
  KV_CHECK(k % e.block.elements == 0, "a row is whole blocks");
  if (valid_rows < kTileOutputs) std::memset(tile, 0, tile_bytes(e.form, k));
  e.pack(rows, row_bytes, valid_rows, k, tile);
}

}  // namespace kvasir::kernels
