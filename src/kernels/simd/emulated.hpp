// AVX-512 intrinsics on a machine with AVX2: SIMDe's, and the conversions that SIMDe 0.7.4 lacks as two halves of 256
// bits. For the tests alone; included by intrinsics.hpp under KVASIR_EMULATE_AVX512.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

namespace kvasir::kernels {
namespace {

inline __m256i lower_half(__m512i x) { return _mm512_castsi512_si256(x); }
inline __m256i high_integers(__m512i x) { return _mm512_extracti64x4_epi64(x, 1); }
inline __m512i both_halves(__m256i low, __m256i high) { return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1); }
inline __m256 lower_half(__m512 x) { return _mm256_castsi256_ps(lower_half(_mm512_castps_si512(x))); }
inline __m256 high_floats(__m512 x) { return _mm256_castsi256_ps(high_integers(_mm512_castps_si512(x))); }
inline __m512 both_halves(__m256 low, __m256 high) {
  return _mm512_castsi512_ps(both_halves(_mm256_castps_si256(low), _mm256_castps_si256(high)));
}

inline __m512 emulated_cvtph_ps(__m256i x) {
  return both_halves(_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}
inline __m256i emulated_cvtps_ph(__m512 x) {   // to nearest even
  return _mm256_set_m128i(_mm256_cvtps_ph(high_floats(x), 0), _mm256_cvtps_ph(lower_half(x), 0));
}
inline __m512 emulated_cvtepi32_ps(__m512i x) {
  return both_halves(_mm256_cvtepi32_ps(lower_half(x)), _mm256_cvtepi32_ps(high_integers(x)));
}
inline __m512i emulated_cvtps_epi32(__m512 x) {   // the default rounding: to nearest even
  return both_halves(_mm256_cvtps_epi32(lower_half(x)), _mm256_cvtps_epi32(high_floats(x)));
}
inline __m512i emulated_cvtepu16_epi32(__m256i x) {
  return both_halves(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)));
}
inline __m512i emulated_cvtepi8_epi32(__m128i x) {
  return both_halves(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)));
}
inline __m128i emulated_cvtepi32_epi8(__m512i x) {   // the low byte of each lane
  std::int32_t lanes[16];
  std::int8_t bytes[16];
  __builtin_memcpy(lanes, &x, sizeof lanes);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::int8_t>(lanes[i]);
  __m128i packed;
  __builtin_memcpy(&packed, bytes, sizeof packed);
  return packed;
}

}  // namespace
}  // namespace kvasir::kernels

#undef _mm512_cvtps_ph   // a macro in GCC's header when not optimising
#define _mm512_cvtph_ps(x) emulated_cvtph_ps(x)
#define _mm512_cvtps_ph(x, rounding) emulated_cvtps_ph(x)
#define _mm512_cvtepi32_ps(x) emulated_cvtepi32_ps(x)
#define _mm512_cvtps_epi32(x) emulated_cvtps_epi32(x)
#define _mm512_cvtepu16_epi32(x) emulated_cvtepu16_epi32(x)
#define _mm512_cvtepi8_epi32(x) emulated_cvtepi8_epi32(x)
#define _mm512_cvtepi32_epi8(x) emulated_cvtepi32_epi8(x)
