// The AVX-512 class (F, BW, DQ, VL, VNNI).
#include "kernels/simd/common.hpp"

namespace kvasir::kernels {
namespace {

#include "kernels/simd/lanes_avx512.hpp"

// Thirty-two registers: up to six rows of four groups.
constexpr int panel_group_count(int) { return 4; }

#include "kernels/simd/codes_body.hpp"
#include "kernels/simd/rows_body.hpp"
#include "kernels/simd/panel_body.hpp"
#include "kernels/simd/attention_body.hpp"
#include "kernels/simd/matmul_avx512_body.hpp"
#define KV_MATMUL_ROWS 8
#include "kernels/simd/matmul_body.hpp"

constexpr KernelSet kSet = {
    .isa = platform::Isa::avx512, .panel_rows = 16, .quantize = quantize, .matmul_int8 = matmul_int8, .matmul_f32 = matmul_f32,
    .unpack_row = exact::unpack_row, .rms_norm = rms_norm, .silu_mul = silu_mul, .gelu_mul = gelu_mul, .store_kv = store_kv,
    .attention_span = attention_span, .attention_merge = attention_merge, .attention_finish = attention_finish};

}  // namespace

#ifdef KVASIR_EMULATE_AVX512
const KernelSet& avx512_emulated_kernels() { return kSet; }
#else
const KernelSet& avx512_kernels() { return kSet; }
#endif

}  // namespace kvasir::kernels
