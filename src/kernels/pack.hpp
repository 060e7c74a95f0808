// From GGUF tensor rows to packed tiles. Nothing is rounded: unpacking a tile gives bit for bit the values that GGUF
// dequantization gives (value = d * q, or d * q + m in two roundings; the K-quants' products d*sc and dmin*mn are
// exact, and so is IQ4_XS's d*sc). Thread rule: pure in the arguments; threads may pack different tiles of one matrix at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/packed_matrix.hpp"

namespace kvasir::kernels {

// How a source row stores its k elements: GGUF's block formats of the same names.
enum class SourceEncoding : std::uint8_t {
  f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs,
};

// The form that keeps every value of an encoding.
WeightForm form_of(SourceEncoding encoding);

// Elements that share one stored block, and that block's bytes: f32 1 and 4, q4_0 32 and 18, q4_k 256 and 144.
struct SourceBlock {
  std::size_t elements = 0;
  std::size_t bytes = 0;
};
SourceBlock source_block(SourceEncoding encoding);

// Packs one tile of 32 outputs. rows: the tile's first row; row r starts at rows + r * row_bytes. valid_rows: 1..32
// rows that exist; the others become zero codes and zero scales. tile: tile_bytes(form_of(encoding), k) bytes, all
// written. REQUIRES: k is a multiple of source_block(encoding).elements.
void pack_tile(SourceEncoding encoding, const std::byte* rows, std::size_t row_bytes, std::size_t valid_rows,
               std::size_t k, std::byte* tile);

}  // namespace kvasir::kernels
