// The vector classes of the kernels: the same bits as exact/, on 16 lanes. Contracts: kernels/kernels.hpp.
#pragma once

#include "kernels/kernels.hpp"

namespace kvasir::kernels {

// REQUIRES: platform::has_isa of the class before any function of the table is called.
const KernelSet& avx2_kernels();
const KernelSet& avx512_kernels();
// The AVX-512 source compiled on emulated instructions (tests on machines without the class).
const KernelSet& avx512_emulated_kernels();

}  // namespace kvasir::kernels
