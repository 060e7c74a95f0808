#include "base/check.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/kernels.hpp"
#include "kernels/simd/simd.hpp"

namespace kvasir::kernels {

const KernelSet& kernel_set(platform::Isa isa) {
  KV_CHECK(platform::has_isa(isa), "kernels are asked for a class that the machine has");
  switch (isa) {
    case platform::Isa::scalar:
      return exact_kernels();
    case platform::Isa::avx2:
      return avx2_kernels();
    case platform::Isa::avx512:
      return avx512_kernels();
  }
  check_failed(__FILE__, __LINE__, "isa", "a class is one of the enumerators");
}

}  // namespace kvasir::kernels
