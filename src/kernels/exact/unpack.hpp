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
  const FormTraits t = traits(form);
  const std::size_t at = lane * 4 + k % 4;
  if (t.bits == 8) return byte_at(half, (k / 4) * kVector + at);

  const std::size_t number = 2 * (k % 16 / 4) + k / 16;  // of the code within its byte
  const auto plane_at = [&](const std::byte* plane, int width) {
    const std::size_t bit = number * static_cast<std::size_t>(width);
    return byte_at(plane, bit / 8 * kVector + at) >> (bit % 8) & ((1 << width) - 1);
  };
  const int low = t.low_plane(), high = t.high_plane();
  int code = plane_at(half, low);
  if (high > 0) code |= plane_at(half + static_cast<std::size_t>(low) * kVector, high) << low;
  return t.table ? kTableCodes[code] : code;
}

// What multiplies and what is added, per output and half of the block's inputs: value = scale * (code - zero) + offset.
struct Scales {
  float scale[2] = {0, 0};   // inputs 0-15 and 16-31; equal if the form has one for both
  float offset[2] = {0, 0};  // 0 if the form has none
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
  const std::size_t second = kHalfOutputs + lane;
  // The bytes behind one f16 an output, or two.
  const auto factor = [&](std::size_t halves, std::size_t h) { return byte_at(scales, (2 * halves + h) * kHalfOutputs + lane); };
  const auto both = [](float scale, float offset) { return Scales{{scale, scale}, {offset, offset}}; };
  Scales s;
  switch (t.scales) {
    case ScaleKind::none: return s;
    case ScaleKind::d: return both(f16_at(lane), 0);
    case ScaleKind::s: return both(f32_at(lane), 0);
    case ScaleKind::dm: return both(f16_at(lane), f16_at(second));
    case ScaleKind::sm: return both(f32_at(lane), f32_at(second));
    case ScaleKind::s2: return {{f32_at(lane), f32_at(second)}, {0, 0}};
    case ScaleKind::f2:
      for (std::size_t h = 0; h < 2; ++h) s.scale[h] = f16_at(lane) * static_cast<float>(static_cast<std::int8_t>(factor(1, h)));
      return s;
    case ScaleKind::f2m:
      for (std::size_t h = 0; h < 2; ++h) {
        s.scale[h] = f16_at(lane) * static_cast<float>(factor(2, h) & 15);
        s.offset[h] = -(f16_at(second) * static_cast<float>(factor(2, h) >> 4));
      }
      return s;
  }
  return s;
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
      if (has_offset(t.scales)) value = value + s.offset[i / 16];
      values[(block * kBlockInputs + i) * stride] = value;
    }
  }
}

}  // namespace kvasir::kernels::exact
