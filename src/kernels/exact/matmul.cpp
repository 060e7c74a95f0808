#include <algorithm>
#include <cmath>

#include "kernels/exact/exact.hpp"
#include "kernels/exact/fma_clones.hpp"
#include "kernels/exact/unpack.hpp"

namespace kvasir::kernels::exact {
namespace {

void put(const MatmulOutput& out, std::size_t row, std::size_t output, float value) {
  float& to = out.data[row * out.stride + output];
  to = out.add ? to + value : value;
}

// Sum of (code - zero) * q over inputs [begin, end) of a block.
std::int32_t dot(const std::int32_t* centred, const std::int8_t* q, std::size_t begin, std::size_t end) {
  std::int32_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += centred[i] * q[i];
  return sum;
}

// One output (`output` of 0..31 in `tile`) for one row.
struct OutputChain {
  WeightForm form = WeightForm::u4_d;
  float sum = 0;

  void add_block(const std::int32_t* centred, const Scales& s, const ActivationPanels& a, std::size_t at) {
    const ScaleKind kind = traits(form).scales;
    const std::int8_t* q = a.q + at * kBlockInputs;
    const float d = a.d[at];
    if (!has_two_scales(kind)) {
      sum = std::fma(static_cast<float>(dot(centred, q, 0, 32)), s.scale[0] * d, sum);
      if (has_offset(kind)) sum = std::fma(s.offset[0], a.ds[at], sum);
      return;
    }
    const std::int32_t sums[2] = {a.sum_low[at], a.sum[at] - a.sum_low[at]};
    for (std::size_t h = 0; h < 2; ++h) {
      sum = std::fma(static_cast<float>(dot(centred, q, 16 * h, 16 * h + 16)), s.scale[h] * d, sum);
      if (has_offset(kind)) sum = std::fma(s.offset[h], d * static_cast<float>(sums[h]), sum);
    }
  }
};

KVASIR_FMA_CLONES
float dot(const float* x, const float* weights, std::size_t k) {
  float sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum = std::fma(x[i], weights[i], sum);
  return sum;
}

}  // namespace

void matmul_int8(const PackedMatrix& w, const ActivationPanels& a, std::size_t rows, std::size_t tile_begin,
                 std::size_t tile_end, MatmulOutput out) {
  constexpr std::size_t kRowGroup = 16;  // rows that share one unpacking of a block's codes
  const int zero = traits(w.form).zero;
  for (std::size_t output = tile_begin * kTileOutputs; output < std::min(w.n, tile_end * kTileOutputs); ++output) {
    const std::byte* tile = w.tile(output / kTileOutputs);
    const std::size_t lane = output % kHalfOutputs;
    for (std::size_t first = 0; first < rows; first += kRowGroup) {
      const std::size_t count = std::min(kRowGroup, rows - first);
      OutputChain chains[kRowGroup];
      for (OutputChain& chain : chains) chain.form = w.form;
      for (std::size_t block = 0; block < w.k / kBlockInputs; ++block) {
        const std::byte* half = half_block(w.form, tile, output % kTileOutputs, block);
        const Scales s = scales_at(w.form, half, lane);
        std::int32_t centred[kBlockInputs];
        for (std::size_t i = 0; i < kBlockInputs; ++i) centred[i] = code_at(w.form, half, lane, i) - zero;
        for (std::size_t r = 0; r < count; ++r) chains[r].add_block(centred, s, a, a.block_index(first + r, block));
      }
      for (std::size_t r = 0; r < count; ++r) put(out, first + r, output, chains[r].sum);
    }
  }
}

void matmul_f32(const PackedMatrix& w, const float* x, std::size_t x_stride, std::size_t rows, std::size_t tile_begin,
                std::size_t tile_end, float* scratch, MatmulOutput out) {
  for (std::size_t output = tile_begin * kTileOutputs; output < std::min(w.n, tile_end * kTileOutputs); ++output) {
    unpack_output(w.form, w.tile(output / kTileOutputs), output % kTileOutputs, w.k, scratch, 1);
    for (std::size_t row = 0; row < rows; ++row) {
      put(out, row, output, dot(x + row * x_stride, scratch, w.k));
    }
  }
}

void unpack_row(const PackedMatrix& w, std::size_t row, float* values) {
  unpack_output(w.form, w.tile(row / kTileOutputs), row % kTileOutputs, w.k, values, 1);
}

}  // namespace kvasir::kernels::exact
