// Dispatch: the one place that knows which classes were compiled in.
#include "base/check.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/kernels.hpp"
#if __has_include("kernels/simd/simd.hpp")
#include "kernels/simd/simd.hpp"
#define KVASIR_SIMD 1
#endif

namespace kvasir::kernels {

const KernelSet& kernel_set(platform::Isa isa) {
  KV_CHECK(platform::has_isa(isa), "kernels are asked for a class that the machine has");
#if defined(KVASIR_SIMD)
  switch (isa) {
    case platform::Isa::scalar: break;
    case platform::Isa::avx2: return avx2_kernels();
    case platform::Isa::avx512: return avx512_kernels();
  }
#endif
  return exact_kernels();
}

}  // namespace kvasir::kernels
