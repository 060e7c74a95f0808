// Weights as the kernels read them: tiles of 32 outputs, one form per bit width, every value of the file kept exactly.
// Thread rule: immutable views; any thread.
//
// A weight matrix has `n` outputs and `k` inputs (y = W x, W[n][k]). It is cut in tiles of 32 outputs; the last tile is
// padded with zero outputs. Each tile is one stream.
//
// Float forms (f32, f16, bf16):   tile = [k][32 outputs]
//
// Integer forms: k is a multiple of 32 (one block). A tile is [k/32][2 halves of 16 outputs]; a half-block is
//   codes                         lane = output o (16), byte i (4):
//     4 low bits, 256 B           vector j = 0..3: byte (o, i): low nibble = k 4j+i, high nibble = k 16+4j+i
//     5th bit, 64 B (u5)          byte (o, i): bit 2j+h = bit 4 of the code of k = 16h + 4j + i
//     5th and 6th bit, 128 B (u6) two vectors p = 0, 1 (j = 2p, 2p+1): byte (o, i): bits 2b, 2b+1 with b = 2(j&1)+h
//     8 bits, 512 B (u8)          vector j = 0..7: byte (o, i) = code of k = 4j+i
//   scales                        16 outputs each:
//     d   f16 d                                   value = d * (code - zero)
//     dm  f16 d, f16 m                            value = d * code + m
//     sm  f32 s, f32 m                            value = s * code + m     (K-quants: s = d*sc, m = -(dmin*mn), both exact)
//     s2  f32 s0, f32 s1                          value = s_h * (code - zero), h = k/16 within the block (Q6_K)
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels {

inline constexpr std::size_t kTileOutputs = 32;
inline constexpr std::size_t kHalfOutputs = 16;
inline constexpr std::size_t kBlockInputs = 32;

enum class WeightForm : std::uint8_t {
  f32, f16, bf16,
  u4_d,   // Q4_0, zero 8
  u4_dm,  // Q4_1
  u4_sm,  // Q4_K
  u5_d,   // Q5_0, zero 16
  u5_dm,  // Q5_1
  u5_sm,  // Q5_K
  u6_s2,  // Q6_K, zero 32
  u8_d,   // Q8_0, zero 128
};

enum class ScaleKind : std::uint8_t { none, d, dm, sm, s2 };

struct FormTraits {
  int bits = 0;                 // of a code; 0 for the float forms
  int zero = 0;                 // subtracted from a code
  ScaleKind scales = ScaleKind::none;
  std::size_t code_bytes = 0;   // of a half-block
  std::size_t scale_bytes = 0;  // of a half-block
  std::size_t element_bytes = 0;   // of a float form
  constexpr std::size_t half_bytes() const { return code_bytes + scale_bytes; }
};

constexpr FormTraits traits(WeightForm form) {
  switch (form) {
    case WeightForm::f32: return {.element_bytes = 4};
    case WeightForm::f16: return {.element_bytes = 2};
    case WeightForm::bf16: return {.element_bytes = 2};
    case WeightForm::u4_d: return {.bits = 4, .zero = 8, .scales = ScaleKind::d, .code_bytes = 256, .scale_bytes = 32};
    case WeightForm::u4_dm: return {.bits = 4, .scales = ScaleKind::dm, .code_bytes = 256, .scale_bytes = 64};
    case WeightForm::u4_sm: return {.bits = 4, .scales = ScaleKind::sm, .code_bytes = 256, .scale_bytes = 128};
    case WeightForm::u5_d: return {.bits = 5, .zero = 16, .scales = ScaleKind::d, .code_bytes = 320, .scale_bytes = 32};
    case WeightForm::u5_dm: return {.bits = 5, .scales = ScaleKind::dm, .code_bytes = 320, .scale_bytes = 64};
    case WeightForm::u5_sm: return {.bits = 5, .scales = ScaleKind::sm, .code_bytes = 320, .scale_bytes = 128};
    case WeightForm::u6_s2: return {.bits = 6, .zero = 32, .scales = ScaleKind::s2, .code_bytes = 384, .scale_bytes = 128};
    case WeightForm::u8_d: return {.bits = 8, .zero = 128, .scales = ScaleKind::d, .code_bytes = 512, .scale_bytes = 32};
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
