#include "kernels/exact/exact.hpp"

namespace kvasir::kernels {

const KernelSet& exact_kernels() {
  static const KernelSet set = {
      .isa = platform::Isa::scalar,
      .panel_rows = 16,
      .quantize = exact::quantize,
      .matmul_int8 = exact::matmul_int8,
      .matmul_f32 = exact::matmul_f32,
      .unpack_row = exact::unpack_row,
      .rms_norm = exact::rms_norm,
      .silu_mul = exact::silu_mul,
      .gelu_mul = exact::gelu_mul,
      .store_kv = exact::store_kv,
      .attention_span = exact::attention_span,
      .attention_merge = exact::attention_merge,
      .attention_finish = exact::attention_finish,
  };
  return set;
}

}  // namespace kvasir::kernels
