// Codes, scales and values of a packed matrix, one at a time: the layout comment of kernels/packed_matrix.hpp as code.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/kv_format.hpp"
#include "kernels/packed_matrix.hpp"

namespace kvasir::kernels::exact {

// The half-block of 16 outputs that holds output `output` (0..31) of a tile, for inputs 32 * block .. 32 * block + 31.
inline const std::byte* half_block(WeightForm form, const std::byte* tile, std::size_t output, std::size_t block) {
  return tile + (block * 2 + output / kHalfOutputs) * traits(form).half_bytes();
}

inline int byte_at(const std::byte* bytes, std::size_t index) { return std::to_integer<int>(bytes[index]); }

// The code of output `lane` (0..15) and input `k` (0..31) of a half-block.
inline int code_at(WeightForm form, const std::byte* half, std::size_t lane, std::size_t k) {
  constexpr std::size_t kVector = 64;  // 16 lanes of 4 bytes
  const std::size_t i = k % 4;
  const std::size_t at = lane * 4 + i;
  const int bits = traits(form).bits;
  if (bits == 8) return byte_at(half, (k / 4) * kVector + at);

  const std::size_t j = (k % 16) / 4;
  const std::size_t h = k / 16;
  const int low = byte_at(half, j * kVector + at) >> (4 * h) & 0x0f;
  const std::byte* high = half + 4 * kVector;
  if (bits == 5) return low | (byte_at(high, at) >> (2 * j + h) & 1) << 4;
  if (bits == 6) return low | (byte_at(high, (j / 2) * kVector + at) >> (2 * (2 * (j % 2) + h)) & 3) << 4;
  return low;
}

// What multiplies and what is added, per output and half of the block's inputs: value = scale * (code - zero) + offset.
struct Scales {
  float scale[2] = {0, 0};  // inputs 0-15 and 16-31; equal but in s2
  float offset = 0;         // of dm and sm
};

inline Scales scales_at(WeightForm form, const std::byte* half, std::size_t lane) {
  const FormTraits t = traits(form);
  const std::byte* scales = half + t.code_bytes;
  const auto f16_at = [&](std::size_t index) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, scales + index * sizeof bits, sizeof bits);
    return format::decode_f16(bits);
  };
  const auto f32_at = [&](std::size_t index) {
    float value = 0;
    std::memcpy(&value, scales + index * sizeof value, sizeof value);
    return value;
  };
  Scales s;
  switch (t.scales) {
    case ScaleKind::none:
      break;
    case ScaleKind::d:
      s.scale[0] = s.scale[1] = f16_at(lane);
      break;
    case ScaleKind::dm:
      s.scale[0] = s.scale[1] = f16_at(lane);
      s.offset = f16_at(kHalfOutputs + lane);
      break;
    case ScaleKind::sm:
      s.scale[0] = s.scale[1] = f32_at(lane);
      s.offset = f32_at(kHalfOutputs + lane);
      break;
    case ScaleKind::s2:
      s.scale[0] = f32_at(lane);
      s.scale[1] = f32_at(kHalfOutputs + lane);
      break;
  }
  return s;
}

constexpr bool has_offset(WeightForm form) {
  return traits(form).scales == ScaleKind::dm || traits(form).scales == ScaleKind::sm;
}

// Element `index` of a float tile or of a KV row part, as f32.
inline float float_at(std::size_t element_bytes, bool is_bf16, const std::byte* bytes) {
  if (element_bytes == 4) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return is_bf16 ? format::decode_bf16(bits) : format::decode_f16(bits);
}

// All `k` dequantized weights of output `output` (0..31) of a tile; values[i * stride] is input i's.
inline void unpack_output(WeightForm form, const std::byte* tile, std::size_t output, std::size_t k, float* values,
                          std::size_t stride) {
  const FormTraits t = traits(form);
  if (!is_integer(form)) {
    for (std::size_t i = 0; i < k; ++i)
      values[i * stride] =
          float_at(t.element_bytes, form == WeightForm::bf16, tile + (i * kTileOutputs + output) * t.element_bytes);
    return;
  }
  const std::size_t lane = output % kHalfOutputs;
  for (std::size_t block = 0; block < k / kBlockInputs; ++block) {
    const std::byte* half = half_block(form, tile, output, block);
    const Scales s = scales_at(form, half, lane);
    for (std::size_t i = 0; i < kBlockInputs; ++i) {
      float value = s.scale[i / 16] * static_cast<float>(code_at(form, half, lane, i) - t.zero);
      if (has_offset(form)) value = value + s.offset;
      values[(block * kBlockInputs + i) * stride] = value;
    }
  }
}

}  // namespace kvasir::kernels::exact
