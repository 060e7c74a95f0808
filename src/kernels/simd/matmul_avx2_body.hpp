// Integer products without a dot-product instruction: vpmaddubsw multiplies unsigned codes by signed activations and adds
// neighbours into 16 bits, exactly, because no sum reaches 32,767:
//   4 bits: 15*127*2 * 8 = 30,480 (eight sums)      5 bits: 31*127*2 * 4 = 31,496 (four)
//   6 bits: 63*127*2 * 2 = 32,004 (two)             8 bits: |code| <= 128: 128*127*2 = 32,512 (one, sign moved to the activation)
//   2 and 3 bits: 7*127*2 * 4 = 7,112 (four: a half has no more)      table forms: as 8 bits
// One vpmaddwd with ones then widens to a 32-bit sum a lane. Included inside the class's namespace.
//
// A row tile of R rows shares each unpacked code vector; 16 outputs (two registers) at a time, sums of a tile in L1.

inline constexpr int kMatmulRows = 4;

struct Codes {
  __m256i a, b;   // outputs 0-7, 8-15: four codes of consecutive k a lane
};

KV_INLINE Codes load_codes(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
KV_INLINE __m256i activations(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, sizeof four);
  return _mm256_set1_epi32(four);
}

// Code `number` of every byte of a plane of WIDTH bits a code, its bits moved to bit TO and the others zero.
template <int WIDTH, int TO>
KV_INLINE Codes plane_codes(const std::byte* plane, int number) {
  const int bit = number * WIDTH % 8;
  const Codes c = load_codes(plane + number * WIDTH / 8 * 64);
  const auto field = [bit](__m256i x) {
    const __m256i moved = bit < TO ? _mm256_slli_epi16(x, TO - bit) : bit > TO ? _mm256_srli_epi16(x, bit - TO) : x;
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(((1 << WIDTH) - 1) << TO)));
  };
  return {field(c.a), field(c.b)};
}

// What is stored of the codes of inputs 16h + 4j .. +3 of a half-block, fewer than 8 bits each.
template <WeightForm FORM>
KV_INLINE Codes codes_of(const std::byte* half, int h, int j) {
  constexpr int low = traits(FORM).low_plane(), high = traits(FORM).high_plane();
  const Codes c = plane_codes<low, 0>(half, 2 * j + h);
  if constexpr (high == 0) {
    return c;
  } else {
    const Codes up = plane_codes<high, low>(half + low * 64, 2 * j + h);
    return {_mm256_or_si256(c.a, up.a), _mm256_or_si256(c.b, up.b)};
  }
}

// The sum stands in its register here. Without it GCC 12 puts all additions of a block off to its end and spills every product.
KV_INLINE void settle(__m256i& x) { asm volatile("" : "+x"(x)); }

template <int R>
struct Dots {
  __m256i a[R], b[R];   // 32-bit sums, outputs 0-7 and 8-15
};

// Sums of code * q over inputs [16*h_begin, 16*h_end) of one block for R rows; rows 32 bytes apart. The products
// asked for fill their last widening: one half at 2, 3 and 6 bits, both at 4 and 5.
template <WeightForm FORM, int R>
KV_INLINE Dots<R> dots_of(const std::byte* half, const std::int8_t* q, int h_begin, int h_end) {
  const __m256i ones = _mm256_set1_epi16(1);
  constexpr int kBits = traits(FORM).bits;
  constexpr int kSumsPerWiden = kBits == 4 ? 8 : kBits == 6 ? 2 : 4;
  Dots<R> total;
  __m256i sa[R], sb[R];
  int pending = 0;
  bool first = true;
#pragma GCC unroll 2
  for (int h = h_begin; h < h_end; ++h) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      keep_order();
      const Codes c = codes_of<FORM>(half, h, j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i y = activations(q + r * kBlockInputs + 16 * h + 4 * j);
        const __m256i pa = _mm256_maddubs_epi16(c.a, y), pb = _mm256_maddubs_epi16(c.b, y);
        sa[r] = pending == 0 ? pa : _mm256_add_epi16(sa[r], pa);
        sb[r] = pending == 0 ? pb : _mm256_add_epi16(sb[r], pb);
        settle(sa[r]);
        settle(sb[r]);
      }
      if (++pending == kSumsPerWiden) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m256i wa = _mm256_madd_epi16(sa[r], ones), wb = _mm256_madd_epi16(sb[r], ones);
          total.a[r] = first ? wa : _mm256_add_epi32(total.a[r], wa);
          total.b[r] = first ? wb : _mm256_add_epi32(total.b[r], wb);
        }
        first = false;
        pending = 0;
      }
    }
  }
  return total;
}

// Weights of inputs 4j .. +3 of a half-block whose codes have zero 128: code - 128 in 8 bits.
template <WeightForm FORM>
KV_INLINE Codes centred_codes(const std::byte* half, int j) {
  const __m256i centre = _mm256_set1_epi8(static_cast<char>(0x80));
  if constexpr (traits(FORM).table) {
    const __m256i table = _mm256_xor_si256(_mm256_broadcastsi128_si256(table_codes()), centre);
    const Codes c = codes_of<FORM>(half, j / 4, j % 4);
    return {_mm256_shuffle_epi8(table, c.a), _mm256_shuffle_epi8(table, c.b)};
  } else {
    const Codes c = load_codes(half + j * 64);
    return {_mm256_xor_si256(c.a, centre), _mm256_xor_si256(c.b, centre)};
  }
}

// Sums of (code - 128) * q over one block for R rows.
template <WeightForm FORM, int R>
KV_INLINE Dots<R> centred_dots(const std::byte* half, const std::int8_t* q) {
  const __m256i ones = _mm256_set1_epi16(1);
  Dots<R> total;
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    keep_order();
    const Codes w = centred_codes<FORM>(half, j);
    const __m256i ma = _mm256_abs_epi8(w.a), mb = _mm256_abs_epi8(w.b);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i y = activations(q + r * kBlockInputs + 4 * j);
      const __m256i pa = _mm256_madd_epi16(_mm256_maddubs_epi16(ma, _mm256_sign_epi8(y, w.a)), ones);
      const __m256i pb = _mm256_madd_epi16(_mm256_maddubs_epi16(mb, _mm256_sign_epi8(y, w.b)), ones);
      total.a[r] = j == 0 ? pa : _mm256_add_epi32(total.a[r], pa);
      total.b[r] = j == 0 ? pb : _mm256_add_epi32(total.b[r], pb);
      settle(total.a[r]);
      settle(total.b[r]);
    }
  }
  return total;
}

KV_INLINE Floats centred_floats(__m256i a, __m256i b, std::int32_t sum, int zero_shift) {
  if (zero_shift != 0) {
    const __m256i centre = _mm256_slli_epi32(_mm256_set1_epi32(sum), zero_shift);
    a = _mm256_sub_epi32(a, centre);
    b = _mm256_sub_epi32(b, centre);
  }
  return {_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b)};
}

// One half-block for R rows: sums[r] gets this block's share.
template <WeightForm FORM, int R>
KV_INLINE void half_block(const std::byte* half, const ActivationPanels& a, std::size_t at, float (*sums)[kTileOutputs]) {
  constexpr FormTraits t = traits(FORM);
  constexpr bool centred = t.zero == 128;
  constexpr bool offset = has_offset(t.scales);
  constexpr int shift = t.zero == 0 || centred ? 0 : __builtin_ctz(t.zero);
  const std::int8_t* q = a.q + at * kBlockInputs;
  const std::byte* scales = half + t.code_bytes;
  if constexpr (has_two_scales(t.scales)) {
    const Dots<R> low = dots_of<FORM, R>(half, q, 0, 1), high = dots_of<FORM, R>(half, q, 1, 2);
    const Floats s0 = scale_of(t, scales, 0), s1 = scale_of(t, scales, 1);
    const Floats m0 = offset_of(t, scales, 0), m1 = offset_of(t, scales, 1);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const std::int32_t sum_low = a.sum_low[at + r], sum_high = a.sum[at + r] - sum_low;
      const Floats d = broadcast(a.d[at + r]);
      Floats f = load(sums[r]);
      f = fma(centred_floats(low.a[r], low.b[r], sum_low, shift), mul(s0, d), f);
      if constexpr (offset) f = fma(m0, broadcast(a.d[at + r] * static_cast<float>(sum_low)), f);
      f = fma(centred_floats(high.a[r], high.b[r], sum_high, shift), mul(s1, d), f);
      if constexpr (offset) f = fma(m1, broadcast(a.d[at + r] * static_cast<float>(sum_high)), f);
      store(sums[r], f);
    }
  } else {
    Dots<R> dots;
    if constexpr (centred) dots = centred_dots<FORM, R>(half, q);
    else dots = dots_of<FORM, R>(half, q, 0, 2);
    const Floats s = scale_of(t, scales, 0), m = offset_of(t, scales, 0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Floats f = fma(centred_floats(dots.a[r], dots.b[r], a.sum[at + r], shift), mul(s, broadcast(a.d[at + r])), load(sums[r]));
      if constexpr (offset) f = fma(m, broadcast(a.ds[at + r]), f);
      store(sums[r], f);
    }
  }
}

template <WeightForm FORM, int R>
KV_NOINLINE void tile_rows(const PackedMatrix& w, const ActivationPanels& a, std::size_t tile, std::size_t row, bool cold, MatmulOutput out) {
  constexpr std::size_t kHalf = traits(FORM).half_bytes();
  alignas(64) float sums[2][R][kTileOutputs] = {};
  const std::byte* p = w.tile(tile);
  for (std::size_t block = 0; block < w.k / kBlockInputs; ++block, p += 2 * kHalf) {
    const std::size_t at = a.block_index(row, block);
    if (cold) prefetch(p + kPrefetchBytes, 2 * kHalf);
    half_block<FORM, R>(p, a, at, sums[0]);
    half_block<FORM, R>(p + kHalf, a, at, sums[1]);
  }
  for (int r = 0; r < R; ++r)
    for (std::size_t half = 0; half < 2; ++half)
      put(load(sums[half][r]), out, row + static_cast<std::size_t>(r), tile * kTileOutputs + half * kHalfOutputs, w.n);
}
