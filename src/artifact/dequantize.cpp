#include <array>
#include <bit>
#include <cstring>

#include "artifact/tensor_type.hpp"
#include "base/check.hpp"
#include "format/kv_format.hpp"

namespace kvasir::artifact {
namespace {

using Bytes = const std::uint8_t*;

std::uint16_t load_u16(Bytes p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }
float load_f16(Bytes p) { return format::decode_f16(load_u16(p)); }
std::uint32_t load_u32(Bytes p) {
  std::uint32_t value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Every function below decodes one block at `p` into `out`. Layouts, in bytes: d and m are f16; qs holds two values a
// byte, the low nibbles being the first half of their group; qh holds the bits above the nibble.

void block_f32(Bytes p, float* out) { *out = std::bit_cast<float>(load_u32(p)); }
void block_f16(Bytes p, float* out) { *out = load_f16(p); }
void block_bf16(Bytes p, float* out) { *out = format::decode_bf16(load_u16(p)); }

// The i-th of 32 nibbles: bytes hold value j low and value j + 16 high.
std::uint8_t nibble32(Bytes qs, std::uint32_t i) { return i < 16 ? qs[i] & 0x0f : qs[i - 16] >> 4; }

void block_q4_0(Bytes p, float* out) {  // d[2] qs[16]
  const float d = load_f16(p);
  for (std::uint32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble32(p + 2, i) - 8);
}

void block_q4_1(Bytes p, float* out) {  // d[2] m[2] qs[16]
  const float d = load_f16(p);
  const float m = load_f16(p + 2);
  for (std::uint32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble32(p + 4, i)) + m;
}

void block_q5_0(Bytes p, float* out) {  // d[2] qh[4] qs[16]
  const float d = load_f16(p);
  const std::uint32_t high = load_u32(p + 2);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const auto q = static_cast<int>(nibble32(p + 6, i) | (high >> i & 1u) << 4);
    out[i] = d * static_cast<float>(q - 16);
  }
}

void block_q5_1(Bytes p, float* out) {  // d[2] m[2] qh[4] qs[16]
  const float d = load_f16(p);
  const float m = load_f16(p + 2);
  const std::uint32_t high = load_u32(p + 4);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const auto q = static_cast<int>(nibble32(p + 8, i) | (high >> i & 1u) << 4);
    out[i] = d * static_cast<float>(q) + m;
  }
}

void block_q8_0(Bytes p, float* out) {  // d[2] qs[32], signed
  const float d = load_f16(p);
  for (std::uint32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<std::int8_t>(p[2 + i]));
}

// Scale and minimum, 6 bits each, of sub-block `j` of 8, from the 12 bytes that Q4_K and Q5_K pack them in: bytes 0-3
// and 4-7 hold scales and minima 0-3 in their low six bits and, above them, the upper two bits of 4-7; bytes 8-11 hold
// the lower four bits of scales (low nibble) and minima (high nibble) 4-7.
struct ScaleMin {
  std::uint8_t scale, min;
};
ScaleMin scale_min(Bytes scales, std::uint32_t j) {
  if (j < 4) return {static_cast<std::uint8_t>(scales[j] & 0x3f), static_cast<std::uint8_t>(scales[j + 4] & 0x3f)};
  const std::uint8_t low = scales[j + 4];
  return {static_cast<std::uint8_t>((low & 0x0f) | (scales[j - 4] >> 2 & 0x30)),
          static_cast<std::uint8_t>(low >> 4 | (scales[j] >> 2 & 0x30))};
}

// The eight sub-blocks of 32 values of a Q4_K or Q5_K block: scale * code - min, both from d, dmin and the packed six bits.
template <class Code>
void block_k(Bytes p, float* out, Code code) {
  const float d = load_f16(p);
  const float dmin = load_f16(p + 2);
  for (std::uint32_t j = 0; j < 8; ++j) {
    const ScaleMin sm = scale_min(p + 4, j);
    const float scale = d * static_cast<float>(sm.scale);
    const float min = dmin * static_cast<float>(sm.min);
    for (std::uint32_t i = 0; i < 32; ++i) out[j * 32 + i] = scale * static_cast<float>(code(j, i)) - min;
  }
}

// scales[16] qs[64] d[2] dmin[2]. A byte of scales covers 16 values: scale low nibble, minimum high nibble. Each half of
// 128 values has 32 bytes of qs, two bits for each of four groups of 32 values.
void block_q2_k(Bytes p, float* out) {
  const float d = load_f16(p + 80);
  const float dmin = load_f16(p + 82);
  for (std::uint32_t i = 0; i < 256; ++i) {
    const int code = p[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 0x03;
    const float scale = d * static_cast<float>(p[i / 16] & 0x0f);
    const float min = dmin * static_cast<float>(p[i / 16] >> 4);
    out[i] = scale * static_cast<float>(code) - min;
  }
}

// The j-th of 16 scales of Q3_K, 6 bits with 32 for zero: bytes 0-7 hold the lower four bits of scales 0-7 (low nibbles)
// and 8-15 (high nibbles), bytes 8-11 the upper two bits of scales j, j + 4, j + 8 and j + 12.
int q3_k_scale(Bytes scales, std::uint32_t j) {
  const int low = scales[j % 8] >> (j / 8 * 4) & 0x0f;
  const int high = scales[8 + j % 4] >> (j / 4 * 2) & 0x03;
  return (low | high << 4) - 32;
}

// hmask[32] qs[64] scales[12] d[2]. qs as Q2_K's; bit j of hmask[i] is the third bit of value i of the j-th 32 values.
void block_q3_k(Bytes p, float* out) {
  const float d = load_f16(p + 108);
  for (std::uint32_t i = 0; i < 256; ++i) {
    const int low = p[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 0x03;
    const int high = p[i % 32] >> (i / 32) & 1;
    const float scale = d * static_cast<float>(q3_k_scale(p + 96, i / 16));
    out[i] = scale * static_cast<float>((low | high << 2) - 4);
  }
}

void block_q4_k(Bytes p, float* out) {  // d[2] dmin[2] scales[12] qs[128]: sub-blocks 2k and 2k+1 share 32 bytes
  block_k(p, out, [qs = p + 16](std::uint32_t j, std::uint32_t i) { return qs[j / 2 * 32 + i] >> (j % 2 * 4) & 0x0f; });
}

void block_q5_k(Bytes p, float* out) {  // d[2] dmin[2] scales[12] qh[32] qs[128]: bit j of qh[i] is sub-block j's
  block_k(p, out, [qh = p + 16, qs = p + 48](std::uint32_t j, std::uint32_t i) {
    return (qs[j / 2 * 32 + i] >> (j % 2 * 4) & 0x0f) | (qh[i] >> j & 1) << 4;
  });
}

// ql[128] qh[64] scales[16] d[2]. Each half of 128 values has 64 bytes of ql (values 0-63 low, 64-127 high nibbles) and
// 32 bytes of qh (two bits for each of four groups of 32 values); a signed 8-bit scale covers 16 values.
void block_q6_k(Bytes p, float* out) {
  const float d = load_f16(p + 208);
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t half = i / 128, group = i % 128 / 32, within = i % 32;
    const int low = p[half * 64 + group % 2 * 32 + within] >> (group / 2 * 4) & 0x0f;
    const int high = p[128 + half * 32 + within] >> (group * 2) & 0x03;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(p[192 + i / 16]));
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

// What the sixteen codes of IQ4_NL and IQ4_XS stand for: steps that grow away from zero.
constexpr std::array<std::int8_t, 16> kNonlinear = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void block_iq4_nl(Bytes p, float* out) {  // d[2] qs[16]
  const float d = load_f16(p);
  for (std::uint32_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(kNonlinear[nibble32(p + 2, i)]);
}

// d[2] scales_h[2] scales_l[4] qs[128]: 32 values share 16 bytes of qs and a scale of 6 bits with 32 for zero, the lower
// four in a nibble of scales_l, the upper two in scales_h.
void block_iq4_xs(Bytes p, float* out) {
  const float d = load_f16(p);
  const std::uint16_t high = load_u16(p + 2);
  for (std::uint32_t j = 0; j < 8; ++j) {
    const int scale = (p[4 + j / 2] >> (j % 2 * 4) & 0x0f) | (high >> (j * 2) & 0x03) << 4;
    const float step = d * static_cast<float>(scale - 32);
    for (std::uint32_t i = 0; i < 32; ++i) out[j * 32 + i] = step * static_cast<float>(kNonlinear[nibble32(p + 8 + j * 16, i)]);
  }
}

using BlockDecoder = void (*)(Bytes, float*);

BlockDecoder decoder(TensorType type) {
  switch (type) {
    case TensorType::f32: return block_f32;
    case TensorType::f16: return block_f16;
    case TensorType::bf16: return block_bf16;
    case TensorType::q4_0: return block_q4_0;
    case TensorType::q4_1: return block_q4_1;
    case TensorType::q5_0: return block_q5_0;
    case TensorType::q5_1: return block_q5_1;
    case TensorType::q8_0: return block_q8_0;
    case TensorType::q2_k: return block_q2_k;
    case TensorType::q3_k: return block_q3_k;
    case TensorType::q4_k: return block_q4_k;
    case TensorType::q5_k: return block_q5_k;
    case TensorType::q6_k: return block_q6_k;
    case TensorType::iq4_nl: return block_iq4_nl;
    case TensorType::iq4_xs: return block_iq4_xs;
  }
  check_failed(__FILE__, __LINE__, "type", "a tensor type is one of the enumerators");
}

}  // namespace

void dequantize(TensorType type, std::span<const std::byte> source, std::span<float> values) {
  const std::size_t elements = block_elements(type);
  const std::size_t bytes = block_bytes(type);
  KV_CHECK(values.size() % elements == 0, "dequantize takes whole blocks");
  KV_CHECK(source.size() == values.size() / elements * bytes, "source and values hold the same number of blocks");
  const BlockDecoder decode = decoder(type);
  auto* from = reinterpret_cast<Bytes>(source.data());
  for (std::size_t block = 0; block < values.size() / elements; ++block)
    decode(from + block * bytes, values.data() + block * elements);
}

}  // namespace kvasir::artifact
