#include "tests/support/random_weights.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "format/kv_format.hpp"
#include "tests/support/gguf_writer.hpp"

namespace kvasir::test {
namespace {

using artifact::TensorType;

constexpr float kSqrt3 = 1.7320508f;  // half the width of a uniform distribution of deviation 1

float symmetric(PhiloxSequence& random) { return 2 * random.uniform() - 1; }
float around_one(PhiloxSequence& random) { return 0.5f + random.uniform(); }
std::uint8_t byte(PhiloxSequence& random) { return static_cast<std::uint8_t>(random.below(256)); }

void put_f16(ByteSink& sink, float value) { sink.put(format::encode_f16(value)); }
void put_random(ByteSink& sink, std::size_t bytes, PhiloxSequence& random) {
  for (std::size_t i = 0; i < bytes; ++i) sink.put(byte(random));
}

// Uniform quants of `bits` bits have this deviation, in steps.
float quant_deviation(int bits) { return static_cast<float>(1 << bits) / (2 * kSqrt3); }

// d [m] [high bits] quants; `centre` is what the quants' mean must be moved by if the block stores a minimum.
void put_simple_block(ByteSink& sink, int bits, bool minimum, float deviation, PhiloxSequence& random) {
  const float d = deviation / quant_deviation(bits) * around_one(random);
  put_f16(sink, d);
  if (minimum) put_f16(sink, -d * (static_cast<float>((1 << bits) - 1) / 2));
  put_random(sink, static_cast<std::size_t>(bits) * 4, random);
}

// Eight 6-bit scales, packed as Q4_K and Q5_K do, with equal minima: dmin = d * (mean quant) then centres every
// sub-block, whatever its scale.
void put_k_scales(ByteSink& sink, PhiloxSequence& random) {
  std::array<std::uint8_t, 8> scale{};
  for (std::uint8_t& s : scale) s = static_cast<std::uint8_t>(16 + random.below(48));
  for (int half = 0; half < 2; ++half)  // bytes 0-3 for the scales, 4-7 for the minima
    for (std::size_t j = 0; j < 4; ++j)
      sink.put(static_cast<std::uint8_t>(scale[j] | (scale[j + 4] >> 4) << 6));
  for (std::size_t j = 4; j < 8; ++j) sink.put(static_cast<std::uint8_t>((scale[j] & 15) | (scale[j] & 15) << 4));
}

void put_k_block(ByteSink& sink, int bits, float deviation, PhiloxSequence& random) {
  constexpr float kMeanScale = 39.5f;
  const float d = deviation / quant_deviation(bits) / kMeanScale * around_one(random);
  put_f16(sink, d);
  put_f16(sink, d * (static_cast<float>((1 << bits) - 1) / 2));
  put_k_scales(sink, random);
  put_random(sink, static_cast<std::size_t>(bits) * 32, random);
}

void put_q6_k_block(ByteSink& sink, float deviation, PhiloxSequence& random) {
  constexpr float kMeanScale = 80;
  put_random(sink, 128 + 64, random);
  for (int i = 0; i < 16; ++i) {
    const int magnitude = 33 + static_cast<int>(random.below(95));
    sink.put(static_cast<std::int8_t>(random.below(2) == 0 ? magnitude : -magnitude));
  }
  put_f16(sink, deviation / quant_deviation(6) / kMeanScale * around_one(random));
}

// A scale and a minimum of equal codes a byte: dmin = d * (mean quant) centres every 16 values.
void put_q2_k_block(ByteSink& sink, float deviation, PhiloxSequence& random) {
  constexpr float kMeanScale = 10;
  for (int i = 0; i < 16; ++i) sink.put(static_cast<std::uint8_t>((4 + random.below(12)) * 0x11));
  put_random(sink, 64, random);
  const float d = deviation / quant_deviation(2) / kMeanScale * around_one(random);
  put_f16(sink, d);
  put_f16(sink, d * 1.5f);
}

// A 6-bit scale with 32 for zero: either sign, and far enough from zero.
std::uint8_t signed_scale(PhiloxSequence& random) {
  const auto magnitude = static_cast<int>(10 + random.below(22));
  return static_cast<std::uint8_t>(32 + (random.below(2) == 0 ? magnitude : -magnitude));
}
constexpr float kMeanSignedScale = 21.5f;

void put_q3_k_block(ByteSink& sink, float deviation, PhiloxSequence& random) {
  put_random(sink, 32 + 64, random);
  std::array<std::uint8_t, 16> scale{};
  for (std::uint8_t& s : scale) s = signed_scale(random);
  for (std::size_t j = 0; j < 8; ++j) sink.put(static_cast<std::uint8_t>((scale[j] & 15) | (scale[j + 8] & 15) << 4));
  for (std::size_t j = 0; j < 4; ++j)
    sink.put(static_cast<std::uint8_t>(scale[j] >> 4 | scale[j + 4] >> 4 << 2 | scale[j + 8] >> 4 << 4 | scale[j + 12] >> 4 << 6));
  put_f16(sink, deviation / quant_deviation(3) / kMeanSignedScale * around_one(random));
}

constexpr float kTableDeviation = 67.4f;  // of IQ4_NL's and IQ4_XS's sixteen values, from zero

void put_iq4_nl_block(ByteSink& sink, float deviation, PhiloxSequence& random) {
  put_f16(sink, deviation / kTableDeviation * around_one(random));
  put_random(sink, 16, random);
}

void put_iq4_xs_block(ByteSink& sink, float deviation, PhiloxSequence& random) {
  put_f16(sink, deviation / kTableDeviation / kMeanSignedScale * around_one(random));
  std::array<std::uint8_t, 8> scale{};
  std::uint16_t high = 0;
  for (std::size_t j = 0; j < 8; ++j) {
    scale[j] = signed_scale(random);
    high = static_cast<std::uint16_t>(high | scale[j] >> 4 << (2 * j));
  }
  sink.put(high);
  for (std::size_t j = 0; j < 8; j += 2) sink.put(static_cast<std::uint8_t>((scale[j] & 15) | (scale[j + 1] & 15) << 4));
  put_random(sink, 128, random);
}

void put_block(ByteSink& sink, TensorType type, float deviation, PhiloxSequence& random) {
  const float value = type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16
                          ? symmetric(random) * deviation * kSqrt3
                          : 0;
  switch (type) {
    case TensorType::f32: sink.put(value); return;
    case TensorType::f16: put_f16(sink, value); return;
    case TensorType::bf16: sink.put(format::encode_bf16(value)); return;
    case TensorType::q4_0: put_simple_block(sink, 4, false, deviation, random); return;
    case TensorType::q4_1: put_simple_block(sink, 4, true, deviation, random); return;
    case TensorType::q5_0: put_simple_block(sink, 5, false, deviation, random); return;
    case TensorType::q5_1: put_simple_block(sink, 5, true, deviation, random); return;
    case TensorType::q8_0: put_simple_block(sink, 8, false, deviation, random); return;
    case TensorType::q2_k: put_q2_k_block(sink, deviation, random); return;
    case TensorType::q3_k: put_q3_k_block(sink, deviation, random); return;
    case TensorType::q4_k: put_k_block(sink, 4, deviation, random); return;
    case TensorType::q5_k: put_k_block(sink, 5, deviation, random); return;
    case TensorType::q6_k: put_q6_k_block(sink, deviation, random); return;
    case TensorType::iq4_nl: put_iq4_nl_block(sink, deviation, random); return;
    case TensorType::iq4_xs: put_iq4_xs_block(sink, deviation, random); return;
  }
  KV_CHECK(false, "a tensor type is one of the enumerators");
}

}  // namespace

std::vector<std::byte> random_weights(TensorType type, std::size_t elements, float deviation, PhiloxSequence& random) {
  const std::size_t block = artifact::block_elements(type);
  KV_CHECK(elements % block == 0, "weights are whole blocks");
  ByteSink sink;
  for (std::size_t i = 0; i < elements / block; ++i) put_block(sink, type, deviation, random);
  return sink.bytes();
}

std::vector<std::byte> random_floats(std::size_t elements, float mean, float deviation, PhiloxSequence& random) {
  ByteSink sink;
  for (std::size_t i = 0; i < elements; ++i) sink.put(mean + symmetric(random) * deviation * kSqrt3);
  return sink.bytes();
}

}  // namespace kvasir::test
