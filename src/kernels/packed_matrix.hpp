// Weights as the kernels read them: tiles of 32 outputs, one form per bit width, every value of the file kept exactly.
// Thread rule: immutable views; any thread.
//
// A weight matrix has `n` outputs and `k` inputs (y = W x, W[n][k]). It is cut in tiles of 32 outputs; the last tile is
// padded with zero outputs. Each tile is one stream.
//
// Float forms (f32, f16, bf16):   tile = [k][32 outputs]
//
// Integer forms: k is a multiple of 32 (one block). A tile is [k/32][2 halves of 16 outputs]; a half-block is
//   codes                         vectors of 64 bytes: lane = output o (16), byte i (4)
//     8 bits                      vector j = 0..7: byte (o, i) = code of k = 4j+i
//     fewer                       one or two planes, the lowest bits of all codes first:
//                                 2 bits: 2      3 bits: 2, 1      4 bits: 4      5 bits: 4, 1      6 bits: 4, 2
//                                 a plane of w bits a code is w vectors: the code of k = 16h + 4j + i is number b = 2j + h
//                                 of its byte (o, i), and stands in vector b*w/8 from bit b*w%8
//   scales                        16 outputs each, h = k/16 within the block:
//     d   f16 d                                   value = d * (code - zero)
//     s   f32 s                                   value = s * (code - zero)
//     dm  f16 d, f16 m                            value = d * code + m
//     sm  f32 s, f32 m                            value = s * code + m
//     s2  f32 s0, f32 s1                          value = s_h * (code - zero)
//     f2  f16 d, i8 c0, i8 c1                     value = s_h * (code - zero), s_h = d * c_h
//     f2m f16 d, f16 dm, u8 c0, u8 c1             value = s_h * code + m_h, s_h = d * (c_h & 15), m_h = -(dm * (c_h >> 4))
//   A K-quant's products of scales (d*sc, dmin*mn) are exact in f32, whether stored (s, sm, s2) or made on the way (f2, f2m).
//   Table forms (t4) store 4 bits a code that number an entry of kTableCodes, and that entry is the code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

inline constexpr std::size_t kTileOutputs = 32;
inline constexpr std::size_t kHalfOutputs = 16;
inline constexpr std::size_t kBlockInputs = 32;

enum class WeightForm : std::uint8_t {
  f32, f16, bf16,
  u2_f2m, // Q2_K
  u3_f2,  // Q3_K, zero 4
  u4_d,   // Q4_0, zero 8
  u4_dm,  // Q4_1
  u4_sm,  // Q4_K
  u5_d,   // Q5_0, zero 16
  u5_dm,  // Q5_1
  u5_sm,  // Q5_K
  u6_s2,  // Q6_K, zero 32
  u8_d,   // Q8_0, zero 128
  t4_d,   // IQ4_NL, zero 128
  t4_s,   // IQ4_XS, zero 128
};

// What the codes of the table forms stand for: GGUF's table of IQ4_NL and IQ4_XS (-127, -104, ... 113) plus 128.
inline constexpr std::uint8_t kTableCodes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

enum class ScaleKind : std::uint8_t { none, d, s, dm, sm, s2, f2, f2m };

// Is something added to scale * code?
constexpr bool has_offset(ScaleKind kind) { return kind == ScaleKind::dm || kind == ScaleKind::sm || kind == ScaleKind::f2m; }
// Has each half of a block's inputs a scale of its own?
constexpr bool has_two_scales(ScaleKind kind) { return kind == ScaleKind::s2 || kind == ScaleKind::f2 || kind == ScaleKind::f2m; }

struct FormTraits {
  int bits = 0;                 // of a code; 0 for the float forms
  int zero = 0;                 // subtracted from a code
  bool table = false;           // the stored bits number a code of kTableCodes
  ScaleKind scales = ScaleKind::none;
  std::size_t code_bytes = 0;   // of a half-block
  std::size_t scale_bytes = 0;  // of a half-block
  std::size_t element_bytes = 0;   // of a float form
  constexpr std::size_t half_bytes() const { return code_bytes + scale_bytes; }
  constexpr int low_plane() const { return bits < 4 ? 2 : 4; }   // its bits a code; for fewer than 8 bits
  constexpr int high_plane() const { return bits - low_plane(); }
};

constexpr FormTraits traits(WeightForm form) {
  switch (form) {
    case WeightForm::f32: return {.element_bytes = 4};
    case WeightForm::f16: return {.element_bytes = 2};
    case WeightForm::bf16: return {.element_bytes = 2};
    case WeightForm::u2_f2m: return {.bits = 2, .scales = ScaleKind::f2m, .code_bytes = 128, .scale_bytes = 96};
    case WeightForm::u3_f2: return {.bits = 3, .zero = 4, .scales = ScaleKind::f2, .code_bytes = 192, .scale_bytes = 64};
    case WeightForm::u4_d: return {.bits = 4, .zero = 8, .scales = ScaleKind::d, .code_bytes = 256, .scale_bytes = 32};
    case WeightForm::u4_dm: return {.bits = 4, .scales = ScaleKind::dm, .code_bytes = 256, .scale_bytes = 64};
    case WeightForm::u4_sm: return {.bits = 4, .scales = ScaleKind::sm, .code_bytes = 256, .scale_bytes = 128};
    case WeightForm::u5_d: return {.bits = 5, .zero = 16, .scales = ScaleKind::d, .code_bytes = 320, .scale_bytes = 32};
    case WeightForm::u5_dm: return {.bits = 5, .scales = ScaleKind::dm, .code_bytes = 320, .scale_bytes = 64};
    case WeightForm::u5_sm: return {.bits = 5, .scales = ScaleKind::sm, .code_bytes = 320, .scale_bytes = 128};
    case WeightForm::u6_s2: return {.bits = 6, .zero = 32, .scales = ScaleKind::s2, .code_bytes = 384, .scale_bytes = 128};
    case WeightForm::u8_d: return {.bits = 8, .zero = 128, .scales = ScaleKind::d, .code_bytes = 512, .scale_bytes = 32};
    case WeightForm::t4_d: return {.bits = 4, .zero = 128, .table = true, .scales = ScaleKind::d, .code_bytes = 256, .scale_bytes = 32};
    case WeightForm::t4_s: return {.bits = 4, .zero = 128, .table = true, .scales = ScaleKind::s, .code_bytes = 256, .scale_bytes = 64};
  }
  return {};
}

constexpr bool is_integer(WeightForm form) { return traits(form).bits != 0; }

// Bytes of one tile of 32 outputs.
constexpr std::size_t tile_bytes(WeightForm form, std::size_t k) {
  const FormTraits t = traits(form);
  return t.bits != 0 ? (k / kBlockInputs) * 2 * t.half_bytes() : k * kTileOutputs * t.element_bytes;
}
constexpr std::size_t tile_count(std::size_t n) { return (n + kTileOutputs - 1) / kTileOutputs; }
constexpr std::size_t packed_bytes(WeightForm form, std::size_t n, std::size_t k) { return tile_count(n) * tile_bytes(form, k); }

// A view of a packed matrix. `tiles` is 64-byte aligned and holds packed_bytes(form, n, k) bytes.
struct PackedMatrix {
  WeightForm form = WeightForm::f32;
  std::size_t n = 0;
  std::size_t k = 0;
  const std::byte* tiles = nullptr;

  const std::byte* tile(std::size_t index) const { return tiles + index * tile_bytes(form, k); }
  std::size_t count() const { return tile_count(n); }
};

}  // namespace kvasir::kernels
