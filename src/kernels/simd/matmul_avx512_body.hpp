// Integer products with the dot-product instruction: vpdpbusd adds four products of unsigned codes and signed activations
// to a 32-bit sum a lane, exactly. 32 outputs (two registers) share each broadcast of activations, so that loads do not
// bound the loop. Included inside the class's namespace.

inline constexpr int kMatmulRows = 8;

KV_INLINE __m512i activations(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, sizeof four);
  return _mm512_set1_epi32(four);
}

// Code `number` of every byte of a plane of WIDTH bits a code, its bits moved to bit TO and the others zero.
template <int WIDTH, int TO>
KV_INLINE __m512i plane_codes(const std::byte* plane, int number) {
  const int bit = number * WIDTH % 8;
  __m512i c = _mm512_loadu_si512(plane + number * WIDTH / 8 * 64);
  if (bit < TO) c = _mm512_slli_epi16(c, static_cast<unsigned>(TO - bit));
  if (bit > TO) c = _mm512_srli_epi16(c, static_cast<unsigned>(bit - TO));
  return _mm512_and_si512(c, _mm512_set1_epi8(static_cast<char>(((1 << WIDTH) - 1) << TO)));
}

// Codes of inputs 16h + 4j .. +3 of a half-block (8 bits: h counts with j).
template <WeightForm FORM>
KV_INLINE __m512i codes_of(const std::byte* half, int h, int j) {
  constexpr FormTraits t = traits(FORM);
  if constexpr (t.bits == 8) {
    return _mm512_loadu_si512(half + (4 * h + j) * 64);
  } else {
    constexpr int low = t.low_plane(), high = t.high_plane();
    __m512i c = plane_codes<low, 0>(half, 2 * j + h);
    if constexpr (high > 0) {
      const __m512i up = plane_codes<high, low>(half + low * 64, 2 * j + h);   // apart: the intrinsic may be a macro
      c = _mm512_or_si512(c, up);
    }
    if constexpr (t.table) c = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table_codes()), c);
    return c;
  }
}

// Sums over inputs [16*h_begin, 16*h_end) of one block for R rows and both halves of a tile, added to dots.
template <WeightForm FORM, int R>
KV_INLINE void add_dots(const std::byte* half0, const std::byte* half1, const std::int8_t* q, int h_begin, int h_end, __m512i (&dots)[R][2]) {
#pragma GCC unroll 2
  for (int h = h_begin; h < h_end; ++h) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i c0 = codes_of<FORM>(half0, h, j), c1 = codes_of<FORM>(half1, h, j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i y = activations(q + r * kBlockInputs + 16 * h + 4 * j);
        dots[r][0] = _mm512_dpbusd_epi32(dots[r][0], c0, y);
        dots[r][1] = _mm512_dpbusd_epi32(dots[r][1], c1, y);
      }
    }
  }
}

// Sum of the activations of one half of a block's inputs.
KV_INLINE std::int32_t half_sum(const ActivationPanels& a, std::size_t at, int h) {
  return h == 0 ? a.sum_low[at] : a.sum[at] - a.sum_low[at];
}

// One block of 32 inputs, 32 outputs, R rows: sums[r] gets this block's share.
template <WeightForm FORM, int R>
KV_INLINE void tile_block(const std::byte* block, const ActivationPanels& a, std::size_t at, Floats (&sums)[R][2]) {
  constexpr FormTraits t = traits(FORM);
  constexpr bool offset = has_offset(t.scales);
  const std::int8_t* q = a.q + at * kBlockInputs;
  const std::byte* half[2] = {block, block + t.half_bytes()};
  __m512i dots[R][2];
  if constexpr (has_two_scales(t.scales)) {
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        dots[r][0] = dots[r][1] = _mm512_set1_epi32(-(half_sum(a, at + r, h) * t.zero));
      }
      add_dots<FORM, R>(half[0], half[1], q, h, h + 1, dots);
#pragma GCC unroll 2
      for (int side = 0; side < 2; ++side) {
        const Floats s = scale_of(t, half[side] + t.code_bytes, h), m = offset_of(t, half[side] + t.code_bytes, h);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          Floats f = fma({_mm512_cvtepi32_ps(dots[r][side])}, mul(s, broadcast(a.d[at + r])), sums[r][side]);
          if constexpr (offset) f = fma(m, broadcast(a.d[at + r] * static_cast<float>(half_sum(a, at + r, h))), f);
          sums[r][side] = f;
        }
      }
    }
    return;
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      constexpr unsigned shift = t.zero == 0 ? 0 : __builtin_ctz(t.zero);
      if constexpr (t.zero != 0) dots[r][0] = dots[r][1] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(_mm512_set1_epi32(a.sum[at + r]), shift));
      else dots[r][0] = dots[r][1] = _mm512_setzero_si512();
    }
    add_dots<FORM, R>(half[0], half[1], q, 0, 2, dots);
#pragma GCC unroll 2
    for (int side = 0; side < 2; ++side) {
      const Floats s = scale_of(t, half[side] + t.code_bytes, 0), m = offset_of(t, half[side] + t.code_bytes, 0);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        Floats f = fma({_mm512_cvtepi32_ps(dots[r][side])}, mul(s, broadcast(a.d[at + r])), sums[r][side]);
        if constexpr (offset) f = fma(m, broadcast(a.ds[at + r]), f);
        sums[r][side] = f;
      }
    }
  }
}

template <WeightForm FORM, int R>
KV_NOINLINE void tile_rows(const PackedMatrix& w, const ActivationPanels& a, std::size_t tile, std::size_t row, bool cold, MatmulOutput out) {
  constexpr std::size_t kHalf = traits(FORM).half_bytes();
  Floats sums[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = zero();
  const std::byte* p = w.tile(tile);
  for (std::size_t block = 0; block < w.k / kBlockInputs; ++block, p += 2 * kHalf) {
    if (cold) prefetch(p + kPrefetchBytes, 2 * kHalf);
    tile_block<FORM, R>(p, a, a.block_index(row, block), sums);
  }
  for (int r = 0; r < R; ++r)
    for (std::size_t half = 0; half < 2; ++half)
      put(sums[r][half], out, row + static_cast<std::size_t>(r), tile * kTileOutputs + half * kHalfOutputs, w.n);
}
