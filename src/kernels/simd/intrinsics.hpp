// The vector intrinsics: the processor's own, or for the tests of the AVX-512 source on other machines SIMDe's portable
// versions of the same names.
#pragma once

#ifdef KVASIR_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#else
#include <immintrin.h>
#endif
