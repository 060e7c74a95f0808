#include "kernels/pack.hpp"

#include <cstring>
#include <tuple>

#include "base/check.hpp"
#include "kernels/pack_sources.hpp"

namespace kvasir::kernels {
namespace {

using namespace pack_sources;

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

constexpr std::size_t kVectorBytes = 64;  // 16 outputs of 4 bytes

// Bits `shift` .. of 32 codes to their places in a plane of kWidth bits a code. `to`: the plane + 4 * lane.
template <int kWidth>
void put_plane(const std::uint32_t (&word)[8], int shift, std::byte* to) {
  constexpr std::uint32_t kMask = 0x01010101u * ((1u << kWidth) - 1);
  std::uint32_t vectors[kWidth] = {};
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t bit = (2 * j + h) * kWidth;
      vectors[bit / 8] |= (word[4 * h + j] >> shift & kMask) << (bit % 8);
    }
  for (std::size_t v = 0; v < kWidth; ++v) store(to + v * kVectorBytes, vectors[v]);
}

// 32 codes of one output to their places in a half-block (kernels/packed_matrix.hpp). `to`: the half-block + 4 * lane.
template <WeightForm kForm>
void put_codes(const Codes& codes, std::byte* to) {
  constexpr FormTraits kTraits = traits(kForm);
  std::uint32_t word[8];  // word[4h + j]: the four codes of k = 16h + 4j ..
  std::memcpy(word, codes.bytes, sizeof word);
  if constexpr (kTraits.bits == 8) {
    for (std::size_t j = 0; j < 8; ++j) store(to + j * kVectorBytes, word[j]);
  } else {
    constexpr int kLow = kTraits.low_plane(), kHigh = kTraits.high_plane();
    put_plane<kLow>(word, 0, to);
    if constexpr (kHigh > 0) put_plane<kHigh>(word, kLow, to + kLow * kVectorBytes);
  }
}

// One output's scales to their places: 16 outputs of the first, 16 of the next ...
template <class... Element>
void put_scales(const Scales<Element...>& scales, std::size_t lane, std::byte* to) {
  std::apply([&](Element... scale) { ((store(to + lane * sizeof scale, scale), to += kHalfOutputs * sizeof scale), ...); }, scales);
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
      put_codes<Source::kForm>(Source::codes(from, block % kSubBlocks), half + 4 * lane);
      put_scales(Source::scales(from, block % kSubBlocks), lane, half + kTraits.code_bytes);
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
    case SourceEncoding::q2_k:
      return integer<Q2_K>();
    case SourceEncoding::q3_k:
      return integer<Q3_K>();
    case SourceEncoding::q4_k:
      return integer<Q4_K>();
    case SourceEncoding::q5_k:
      return integer<Q5_K>();
    case SourceEncoding::q6_k:
      return integer<Q6_K>();
    case SourceEncoding::iq4_nl:
      return integer<IQ4_NL>();
    case SourceEncoding::iq4_xs:
      return integer<IQ4_XS>();
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
