// The AVX2 class (AVX2, FMA, F16C).
#include "kernels/simd/common.hpp"

namespace kvasir::kernels {
namespace {

#include "kernels/simd/lanes_avx2.hpp"

// Sixteen registers: six rows of 16 lanes, or fewer rows and more groups, so that the sums' latency is hidden.
constexpr int panel_group_count(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

#include "kernels/simd/codes_body.hpp"
#include "kernels/simd/rows_body.hpp"
#include "kernels/simd/panel_body.hpp"
#include "kernels/simd/attention_body.hpp"
#include "kernels/simd/matmul_avx2_body.hpp"
#define KV_MATMUL_ROWS 4
#include "kernels/simd/matmul_body.hpp"

}  // namespace

const KernelSet& avx2_kernels() {
  static constexpr KernelSet set = {
      .isa = platform::Isa::avx2, .panel_rows = 16, .quantize = quantize, .matmul_int8 = matmul_int8, .matmul_f32 = matmul_f32,
      .unpack_row = exact::unpack_row, .rms_norm = rms_norm, .silu_mul = silu_mul, .gelu_mul = gelu_mul, .store_kv = store_kv,
      .attention_span = attention_span, .attention_merge = attention_merge, .attention_finish = attention_finish};
  return set;
}

}  // namespace kvasir::kernels
