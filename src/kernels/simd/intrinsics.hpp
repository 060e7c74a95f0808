// The vector intrinsics: the processor's own, or for the tests of the AVX-512 source on other machines SIMDe's portable
// versions of the same names.
#pragma once

#ifdef KVASIR_EMULATE_AVX512
#include "kernels/simd/emulated.hpp"
#else
#include <immintrin.h>
#endif
