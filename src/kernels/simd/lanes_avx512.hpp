// Sixteen lanes as one 512-bit register. Every class offers the same names with the same bits; the kernels in
// *_body.hpp are written once on top of them. Included inside the class's namespace, after simd/intrinsics.hpp.

struct Floats {
  __m512 v;
};

KV_INLINE Floats zero() { return {_mm512_setzero_ps()}; }
KV_INLINE Floats broadcast(float x) { return {_mm512_set1_ps(x)}; }
KV_INLINE Floats load(const float* p) { return {_mm512_loadu_ps(p)}; }
KV_INLINE void store(float* p, Floats x) { _mm512_storeu_ps(p, x.v); }
KV_INLINE Floats fma(Floats x, Floats y, Floats z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
KV_INLINE Floats add(Floats x, Floats y) { return {_mm512_add_ps(x.v, y.v)}; }
KV_INLINE Floats sub(Floats x, Floats y) { return {_mm512_sub_ps(x.v, y.v)}; }
KV_INLINE Floats mul(Floats x, Floats y) { return {_mm512_mul_ps(x.v, y.v)}; }
KV_INLINE Floats div(Floats x, Floats y) { return {_mm512_div_ps(x.v, y.v)}; }
// Comparisons with a written choice: the emulated maximum of NaN and of zeros may differ from the instruction's.
KV_INLINE Floats older_max(Floats x, Floats y) {   // x > y ? x : y
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, y.v, _CMP_GT_OQ), y.v, x.v)};
}
KV_INLINE Floats min(Floats x, Floats y) {   // x < y ? x : y
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ), y.v, x.v)};
}
KV_INLINE Floats magnitude(Floats x) {
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff)))};
}

// Lanes below n keep x, the others get y.
KV_INLINE Floats first_lanes(std::size_t n, Floats x, Floats y) {
  const auto mask = static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u);
  return {_mm512_mask_blend_ps(mask, y.v, x.v)};
}
// x where value >= bound, else +0 (NaN included).
KV_INLINE Floats zero_unless_at_least(Floats value, Floats bound, Floats x) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(value.v, bound.v, _CMP_GE_OQ), _mm512_setzero_ps(), x.v)};
}
// p * 2^n, n the low bits of `shifted` taken as an integer.
KV_INLINE Floats add_exponent(Floats p, Floats shifted) {
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23)))};
}

KV_INLINE __m256 upper_half(__m512 x) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)); }

KV_INLINE float sum_lanes(Floats x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
KV_INLINE float max_lanes(Floats x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), upper_half(x.v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

KV_INLINE Floats load_f16(const std::uint16_t* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
KV_INLINE Floats load_bf16(const std::uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
KV_INLINE void store_f16(std::uint16_t* p, Floats x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}

// Sixteen bytes, signed, as floats; and four bits of each, from bit `shift`, unsigned.
KV_INLINE __m512i wide_bytes(const std::byte* p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
KV_INLINE Floats byte_floats(const std::byte* p) { return {_mm512_cvtepi32_ps(wide_bytes(p))}; }
KV_INLINE Floats nibble_floats(const std::byte* p, int shift) {
  const __m512i shifted = _mm512_srl_epi32(wide_bytes(p), _mm_cvtsi32_si128(shift));
  return {_mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(15)))};
}

// A number a lane, of 16 outputs.
struct Integers {
  __m512i v;
};
// (32-bit lanes of the 64 bytes at p >> shift) & mask
KV_INLINE Integers field(const std::byte* p, int shift, int mask) {
  return {_mm512_and_si512(_mm512_srl_epi32(_mm512_loadu_si512(p), _mm_cvtsi32_si128(shift)), _mm512_set1_epi32(mask))};
}
// low + (high << bits); their bits are apart
KV_INLINE Integers joined(Integers low, Integers high, int bits) {
  return {_mm512_or_si512(low.v, _mm512_sll_epi32(high.v, _mm_cvtsi32_si128(bits)))};
}
// Entry x (0..15) of a table of bytes.
KV_INLINE Integers looked_up(Integers x, __m128i table) {
  return {_mm512_and_si512(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), x.v), _mm512_set1_epi32(255))};
}
// float(x - zero_code)
KV_INLINE Floats centred(Integers x, int zero_code) {
  return {_mm512_cvtepi32_ps(_mm512_sub_epi32(x.v, _mm512_set1_epi32(zero_code)))};
}

// 16 floats to 8-bit integers, to nearest even; magnitudes above 127 (and NaN) become 0. Returns their sum.
KV_INLINE std::int32_t store_rounded(std::int8_t* p, Floats x) {
  const __m512 r = _mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __mmask16 small = _mm512_cmp_ps_mask(magnitude({r}).v, _mm512_set1_ps(127.0f), _CMP_LE_OQ);
  const __m512i q = _mm512_cvtps_epi32(_mm512_mask_blend_ps(small, _mm512_setzero_ps(), r));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(q));
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(q), _mm512_extracti64x4_epi64(q, 1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}
