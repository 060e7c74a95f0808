// Sixteen lanes as two 256-bit registers. Every class offers the same names with the same bits; the kernels in
// *_body.hpp are written once on top of them. Included inside the class's namespace, after simd/intrinsics.hpp.

struct Floats {
  __m256 a, b;   // lanes 0-7, 8-15
};

KV_INLINE Floats zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
KV_INLINE Floats broadcast(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
KV_INLINE Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
KV_INLINE void store(float* p, Floats x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
KV_INLINE Floats fma(Floats x, Floats y, Floats z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
KV_INLINE Floats add(Floats x, Floats y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
KV_INLINE Floats sub(Floats x, Floats y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
KV_INLINE Floats mul(Floats x, Floats y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
KV_INLINE Floats div(Floats x, Floats y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
KV_INLINE Floats older_max(Floats x, Floats y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }   // x > y ? x : y
KV_INLINE Floats min(Floats x, Floats y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }         // x < y ? x : y
KV_INLINE Floats magnitude(Floats x) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}

// Lanes below n keep x, the others get y.
KV_INLINE Floats first_lanes(std::size_t n, Floats x, Floats y) {
  const __m256i count = _mm256_set1_epi32(static_cast<int>(n));
  const __m256 low = _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  const __m256 high = _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)));
  return {_mm256_blendv_ps(y.a, x.a, low), _mm256_blendv_ps(y.b, x.b, high)};
}
// x where value >= bound, else +0 (NaN included).
KV_INLINE Floats zero_unless_at_least(Floats value, Floats bound, Floats x) {
  return {_mm256_and_ps(x.a, _mm256_cmp_ps(value.a, bound.a, _CMP_GE_OQ)),
          _mm256_and_ps(x.b, _mm256_cmp_ps(value.b, bound.b, _CMP_GE_OQ))};
}
// p * 2^n, n the low bits of `shifted` taken as an integer.
KV_INLINE Floats add_exponent(Floats p, Floats shifted) {
  const auto one = [](__m256 q, __m256 s) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(q), _mm256_slli_epi32(_mm256_castps_si256(s), 23)));
  };
  return {one(p.a, shifted.a), one(p.b, shifted.b)};
}

KV_INLINE float sum_lanes(Floats x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
KV_INLINE float max_lanes(Floats x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

KV_INLINE Floats load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
KV_INLINE Floats load_bf16(const std::uint16_t* p) {
  const auto widen = [](__m128i x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)); };
  return {widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
KV_INLINE void store_f16(std::uint16_t* p, Floats x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}

// Sixteen bytes, signed, as floats; and four bits of each, from bit `shift`, unsigned.
KV_INLINE Floats byte_floats(const std::byte* p) {
  const auto one = [](const std::byte* q) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q))));
  };
  return {one(p), one(p + 8)};
}
KV_INLINE Floats nibble_floats(const std::byte* p, int shift) {
  const auto one = [&](const std::byte* q) {
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q)));
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srl_epi32(bytes, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(15)));
  };
  return {one(p), one(p + 8)};
}

// A number a lane, of 16 outputs.
struct Integers {
  __m256i a, b;
};
// (32-bit lanes of the 64 bytes at p >> shift) & mask
KV_INLINE Integers field(const std::byte* p, int shift, int mask) {
  const auto one = [&](const std::byte* q) {
    const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
    return _mm256_and_si256(_mm256_srl_epi32(lanes, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
  };
  return {one(p), one(p + 32)};
}
// low + (high << bits); their bits are apart
KV_INLINE Integers joined(Integers low, Integers high, int bits) {
  const __m128i count = _mm_cvtsi32_si128(bits);
  return {_mm256_or_si256(low.a, _mm256_sll_epi32(high.a, count)), _mm256_or_si256(low.b, _mm256_sll_epi32(high.b, count))};
}
// Entry x (0..15) of a table of bytes.
KV_INLINE Integers looked_up(Integers x, __m128i table) {
  const __m256i both = _mm256_broadcastsi128_si256(table), byte = _mm256_set1_epi32(255);
  return {_mm256_and_si256(_mm256_shuffle_epi8(both, x.a), byte), _mm256_and_si256(_mm256_shuffle_epi8(both, x.b), byte)};
}
// float(x - zero_code)
KV_INLINE Floats centred(Integers x, int zero_code) {
  const __m256i zeros = _mm256_set1_epi32(zero_code);
  return {_mm256_cvtepi32_ps(_mm256_sub_epi32(x.a, zeros)), _mm256_cvtepi32_ps(_mm256_sub_epi32(x.b, zeros))};
}

// 16 floats to 8-bit integers, to nearest even; magnitudes above 127 (and NaN) become 0. Returns their sum.
KV_INLINE std::int32_t store_rounded(std::int8_t* p, Floats x) {
  const auto one = [](__m256 v) {
    const __m256 r = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 m = _mm256_and_ps(r, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
    return _mm256_cvtps_epi32(_mm256_and_ps(r, _mm256_cmp_ps(m, _mm256_set1_ps(127.0f), _CMP_LE_OQ)));
  };
  const __m256i low = one(x.a), high = one(x.b);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  const __m256i eight = _mm256_add_epi32(low, high);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}
