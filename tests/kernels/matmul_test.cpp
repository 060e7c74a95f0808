// Products of packed weights: every class equals the scalar twin bit for bit, and the twin is accurate.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/exact/exact.hpp"
#include "kernels/exact/unpack.hpp"
#include "kernels/reference/reference.hpp"
#include "tests/kernels/support.hpp"

namespace kvasir::kernels::test {
namespace {

class MatmulEveryClass : public EveryClass {};
KVASIR_FOR_EVERY_CLASS(MatmulEveryClass);

constexpr std::size_t kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 32, 33, 48, 67};
struct Shape {
  std::size_t n, k;
};

// The output of a product with its surroundings: rows wider than n, filled with marks before.
struct Output {
  std::size_t stride;
  std::vector<float> data;
  Output(std::size_t rows, std::size_t n, std::uint64_t seed) : stride(n + 5) {
    Random random(seed);
    data = random.normals(rows * stride);
  }
  MatmulOutput view(bool add) { return {.data = data.data(), .stride = stride, .add = add}; }
};

// Calls product(begin, end) over tiles [0, tiles) cut at random places.
template <class Product>
void in_ranges(std::size_t tiles, std::uint64_t seed, Product product) {
  Random random(seed);
  for (std::size_t begin = 0; begin < tiles;) {
    const std::size_t end = begin + 1 + random.below(tiles - begin);
    product(begin, end);
    begin = end;
  }
}

void expect_int8_equal(const KernelSet& set, const Matrix& w, std::size_t rows, bool add, std::uint64_t seed) {
  Random random(seed);
  const std::vector<float> x = random.normals(rows * w.view.k, random.uniform(0.1f, 10));
  const Activations theirs = quantize(set, x.data(), w.view.k, rows, w.view.k);
  const Activations twins = quantize(exact_kernels(), x.data(), w.view.k, rows, w.view.k);
  Output got(rows, w.view.n, seed);
  Output wanted(rows, w.view.n, seed);
  exact::matmul_int8(w.view, twins.panels, rows, 0, w.view.count(), wanted.view(add));
  in_ranges(w.view.count(), seed, [&](std::size_t begin, std::size_t end) {
    set.matmul_int8(w.view, theirs.panels, rows, begin, end, got.view(add));
  });
  const Comparison c = compare(got.data, wanted.data);
  ASSERT_TRUE(c) << "rows " << rows << ", n " << w.view.n << ", k " << w.view.k << ", add " << add << ": " << c.message;
}

TEST_P(MatmulEveryClass, Int8EqualsTheTwin) {
  for (SourceEncoding encoding : integer_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    const bool k_quant = source_block(encoding).elements == 256;
    const Matrix main = random_matrix(encoding, 70, k_quant ? 256 : 96, 1);
    std::uint64_t seed = 0;
    for (std::size_t rows : kRows) {
      expect_int8_equal(set(), main, rows, rows % 2 == 0, ++seed);
      if (HasFatalFailure()) return;
    }
    const Shape shapes[] = {{1, 256}, {32, 256}, {33, k_quant ? 512u : 32u}, {96, k_quant ? 768u : 576u}, {40, 2048}};
    for (const Shape& shape : shapes) {
      const Matrix w = random_matrix(encoding, shape.n, shape.k, shape.n);
      for (std::size_t rows : {std::size_t{1}, std::size_t{5}, std::size_t{19}}) {
        expect_int8_equal(set(), w, rows, rows == 5, ++seed);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The largest dots an 8-bit kernel can meet: codes and activations at their ends, where a saturating product would
// show.
TEST_P(MatmulEveryClass, Int8DoesNotSaturate) {
  for (SourceEncoding encoding : integer_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    for (int byte : {0x00, 0x7f, 0x80, 0xff}) {
      const Matrix w = random_matrix(encoding, 32, 256, 4);
      const FormTraits t = traits(w.view.form);
      for (std::size_t at = 0; at < tile_bytes(w.view.form, 256); at += t.half_bytes())
        std::memset(w.memory.data() + at, byte, t.code_bytes);  // all codes alike, scales kept
      for (float sign : {1.0f, -1.0f}) {
        const std::vector<float> x(3 * 256, 2.0f * sign);
        const Activations theirs = quantize(set(), x.data(), 256, 3, 256);
        const Activations twins = quantize(exact_kernels(), x.data(), 256, 3, 256);
        Output got(3, 32, 1), wanted(3, 32, 1);
        set().matmul_int8(w.view, theirs.panels, 3, 0, 1, got.view(false));
        exact::matmul_int8(w.view, twins.panels, 3, 0, 1, wanted.view(false));
        const Comparison c = compare(got.data, wanted.data);
        ASSERT_TRUE(c) << "codes " << byte << ": " << c.message;
      }
    }
  }
}

TEST_P(MatmulEveryClass, Int8RowsDoNotDependOnEachOther) {
  const std::size_t rows = 37, n = 64, k = 256;
  for (SourceEncoding encoding : integer_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    const Matrix w = random_matrix(encoding, n, k, 8);
    Random random(8);
    const std::vector<float> x = random.normals(rows * k);
    const Activations all = quantize(set(), x.data(), k, rows, k);
    Output together(rows, n, 1), alone(rows, n, 1);
    set().matmul_int8(w.view, all.panels, rows, 0, 2, together.view(false));
    for (std::size_t row = 0; row < rows; ++row) {
      const Activations one = quantize(set(), x.data() + row * k, k, 1, k);
      set().matmul_int8(w.view, one.panels, 1, 0, 2,
                        {.data = alone.data.data() + row * alone.stride, .stride = alone.stride});
    }
    const Comparison c = compare(together.data, alone.data);
    ASSERT_TRUE(c) << c.message;
  }
}

TEST_P(MatmulEveryClass, F32EqualsTheTwin) {
  for (SourceEncoding encoding : all_encodings()) {
    SCOPED_TRACE(name_of(encoding));
    const bool any_k = source_block(encoding).elements == 1;
    std::uint64_t seed = 40;
    for (const Shape& shape :
         {Shape{1, 256}, Shape{33, any_k ? 77u : 256u}, Shape{96, any_k ? 33u : 512u}, Shape{70, 256}}) {
      const Matrix w = random_matrix(encoding, shape.n, shape.k, shape.n);
      const platform::AlignedArray<float> scratch(shape.k * kTileOutputs);
      for (std::size_t rows : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}, std::size_t{6},
                               std::size_t{7}, std::size_t{20}}) {
        const bool add = ++seed % 2 == 0;
        Random random(seed);
        const std::size_t stride = shape.k + seed % 4;
        const std::vector<float> x = random.normals(rows * stride);
        Output got(rows, shape.n, seed), wanted(rows, shape.n, seed);
        exact::matmul_f32(w.view, x.data(), stride, rows, 0, w.view.count(), scratch.data(), wanted.view(add));
        in_ranges(w.view.count(), seed, [&](std::size_t begin, std::size_t end) {
          set().matmul_f32(w.view, x.data(), stride, rows, begin, end, scratch.data(), got.view(add));
        });
        const Comparison c = compare(got.data, wanted.data);
        ASSERT_TRUE(c) << "rows " << rows << ", n " << shape.n << ", k " << shape.k << ": " << c.message;
      }
    }
  }
}

TEST_P(MatmulEveryClass, OutputsBehindTheLastAreNotWritten) {
  const std::size_t n = 37, k = 256, rows = 9;
  Random random(2);
  const std::vector<float> x = random.normals(rows * k);
  const platform::AlignedArray<float> scratch(k * kTileOutputs);
  for (SourceEncoding encoding : all_encodings()) {
    const Matrix w = random_matrix(encoding, n, k, 2);
    Output out(rows, n, 3);
    const std::vector<float> before = out.data;
    if (is_integer(w.view.form)) {
      const Activations a = quantize(set(), x.data(), k, rows, k);
      set().matmul_int8(w.view, a.panels, rows, 0, 2, out.view(false));
    } else {
      set().matmul_f32(w.view, x.data(), k, rows, 0, 2, scratch.data(), out.view(false));
    }
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t o = 0; o < out.stride; ++o)
        EXPECT_EQ(out.data[row * out.stride + o] == before[row * out.stride + o], o >= n)
            << name_of(encoding) << " row " << row << " output " << o;
  }
}

// ---- accuracy, against double

constexpr double kUnit = 0x1p-24;  // half an ulp of 1

// What n roundings in a chain can do, relative to the sum of the magnitudes (Higham's gamma).
double gamma_of(std::size_t n) { return static_cast<double>(n) * kUnit / (1 - static_cast<double>(n) * kUnit); }

TEST_P(MatmulEveryClass, F32IsAsAccurateAsAChainOfKRoundings) {
  const std::size_t n = 40, k = 512, rows = 3;
  Random random(31);
  const std::vector<float> x = random.normals(rows * k);
  const platform::AlignedArray<float> scratch(k * kTileOutputs);
  for (SourceEncoding encoding : all_encodings()) {
    const Matrix w = random_matrix(encoding, n, k, 31);
    Output out(rows, n, 1);
    set().matmul_f32(w.view, x.data(), k, rows, 0, w.view.count(), scratch.data(), out.view(false));
    std::vector<float> weights(k);
    for (std::size_t o = 0; o < n; ++o) {
      set().unpack_row(w.view, o, weights.data());
      for (std::size_t row = 0; row < rows; ++row) {
        const reference::Judged sum = reference::dot(x.data() + row * k, weights.data(), k);
        EXPECT_LE(std::fabs(out.data[row * out.stride + o] - sum.value), gamma_of(k) * sum.magnitude)
            << name_of(encoding);
      }
    }
  }
}

// One output of an integer product, judged: what it should be in double, and what its error may be made of.
struct Int8Judge {
  double value = 0;      // plain product of the exact weights and the unrounded activations
  double steps = 0;      // sum of |w| d: what an error of one activation step is worth
  double magnitude = 0;  // sum of the magnitudes of the chain's terms
};
// What a block's offsets add to the chain: one term, or one for each half of the inputs.
double offset_magnitude(WeightForm form, const exact::Scales& s, const ActivationPanels& a, std::size_t at) {
  if (!has_two_scales(traits(form).scales)) return std::fabs(double{s.offset[0]} * double{a.ds[at]});
  const int sums[2] = {a.sum_low[at], a.sum[at] - a.sum_low[at]};
  double magnitude = 0;
  for (std::size_t h = 0; h < 2; ++h) magnitude += std::fabs(double{s.offset[h]} * double{a.d[at]} * sums[h]);
  return magnitude;
}
Int8Judge judge(const PackedMatrix& w, std::size_t output, const float* x, const ActivationPanels& a, std::size_t row) {
  Int8Judge j;
  for (std::size_t block = 0; block < w.k / kBlockInputs; ++block) {
    const std::byte* half = exact::half_block(w.form, w.tile(output / kTileOutputs), output % kTileOutputs, block);
    const exact::Scales s = exact::scales_at(w.form, half, output % kHalfOutputs);
    const std::size_t at = a.block_index(row, block);
    int dots[2] = {0, 0};
    for (std::size_t i = 0; i < kBlockInputs; ++i) {
      const int code = exact::code_at(w.form, half, output % kHalfOutputs, i) - traits(w.form).zero;
      const double weight = double{s.scale[i / 16]} * code + double{s.offset[i / 16]};
      j.value += double{x[block * kBlockInputs + i]} * weight;
      j.steps += std::fabs(weight) * double{a.d[at]};
      dots[i / 16] += code * a.q[at * kBlockInputs + i];
    }
    for (std::size_t h = 0; h < 2; ++h) j.magnitude += std::fabs(double{s.scale[h]} * double{a.d[at]} * dots[h]);
    j.magnitude += offset_magnitude(w.form, s, a, at);
  }
  return j;
}

// Two errors: an activation is off by at most half a step (and 4 units of up to 127 steps on the way to its code); the
// chain has a fused step for each scale and each offset of a block, over terms that were rounded once (s * d; d * sum).
TEST_P(MatmulEveryClass, Int8ErrorIsHalfAnActivationStep) {
  const std::size_t n = 40, k = 512, rows = 3;
  Random random(32);
  const std::vector<float> x = random.normals(rows * k);
  const Activations a = quantize(set(), x.data(), k, rows, k);
  for (SourceEncoding encoding : integer_encodings()) {
    const Matrix w = random_matrix(encoding, n, k, 32);
    const std::size_t steps = traits(w.view.form).scales == ScaleKind::f2m ? 4 : 2;
    Output out(rows, n, 1);
    set().matmul_int8(w.view, a.panels, rows, 0, w.view.count(), out.view(false));
    for (std::size_t o = 0; o < n; ++o)
      for (std::size_t row = 0; row < rows; ++row) {
        const Int8Judge j = judge(w.view, o, x.data() + row * k, a.panels, row);
        const double chain = gamma_of(steps * (k / kBlockInputs) + 1) * j.magnitude;
        const double bound = j.steps * (0.5 + 127 * 4 * kUnit) + chain;
        EXPECT_LE(std::fabs(double{out.data[row * out.stride + o]} - j.value), bound) << name_of(encoding);
      }
  }
}

}  // namespace
}  // namespace kvasir::kernels::test
