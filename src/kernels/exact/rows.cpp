// Kernels over one row of floats.
#include <cmath>
#include <cstring>

#include "base/fixed_math.hpp"
#include "format/kv_format.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/exact/lanes.hpp"

namespace kvasir::kernels::exact {
namespace {

// One block of 32 inputs: block `at` of the panels.
void quantize_block(const float* x, const ActivationPanels& to, std::size_t at) {
  std::int8_t* q = to.q + at * kBlockInputs;
  float largest = 0;
  for (std::size_t i = 0; i < kBlockInputs; ++i) largest = max_of(largest, std::fabs(x[i]));
  const float d = largest / 127.0f;
  const float inverse = largest >= kSmallestActivation ? 127.0f / largest : 0.0f;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < kBlockInputs; ++i) {
    const float rounded = std::nearbyint(x[i] * inverse);  // to nearest even: the default rounding mode
    q[i] = std::fabs(rounded) <= 127.0f ? static_cast<std::int8_t>(rounded) : std::int8_t{0};  // NaN and infinity: 0
    sum += q[i];
    if (i == kBlockInputs / 2 - 1) to.sum_low[at] = sum;
  }
  to.d[at] = d;
  to.ds[at] = d * static_cast<float>(sum);
  to.sum[at] = sum;
}

void encode(float value, format::KvType type, std::byte* to) {
  if (type == format::KvType::f32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = type == format::KvType::f16 ? format::encode_f16(value) : format::encode_bf16(value);
  std::memcpy(to, &bits, sizeof bits);
}

}  // namespace

void quantize(const float* x, std::size_t x_stride, std::size_t row_begin, std::size_t row_end,
              ActivationPanels panels) {
  for (std::size_t row = row_begin; row < row_end; ++row)
    for (std::size_t block = 0; block < panels.k / kBlockInputs; ++block) {
      quantize_block(x + row * x_stride + block * kBlockInputs, panels, panels.block_index(row, block));
    }
}

void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* y) {
  LaneSum squares;
  for (std::size_t i = 0; i < n; ++i) squares.add_square(i, x[i]);
  const float r = 1.0f / std::sqrt(squares.total() / static_cast<float>(n) + epsilon);
  for (std::size_t i = 0; i < n; ++i) y[i] = (x[i] * r) * weight[i];
}

void silu_mul(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) gate[i] = (gate[i] / (1.0f + exp_f32(-gate[i]))) * up[i];
}

void gelu_mul(float* gate, const float* up, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float x = gate[i];
    const float u = std::fma(x * x, kGeluCube, kGeluLinear) * x;
    gate[i] = (x / (1.0f + exp_f32(u))) * up[i];
  }
}

void store_kv(const float* k, const float* v, std::size_t head_dim, format::KvFormat format, std::byte* k_to,
              std::byte* v_to) {
  const std::size_t k_stride = format::kKeysPerTile * format::element_bytes(format.k);
  const std::size_t v_stride = format::element_bytes(format.v);
  for (std::size_t c = 0; c < head_dim; ++c) {
    encode(k[c], format.k, k_to + c * k_stride);
    encode(v[c], format.v, v_to + c * v_stride);
  }
}

}  // namespace kvasir::kernels::exact
