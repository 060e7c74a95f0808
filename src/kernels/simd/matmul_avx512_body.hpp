// Integer products with the dot-product instruction: vpdpbusd adds four products of unsigned codes and signed activations
// to a 32-bit sum a lane, exactly. 32 outputs (two registers) share each broadcast of activations, so that loads do not
// bound the loop. Included inside the class's namespace.

inline constexpr int kMatmulRows = 8;

KV_INLINE __m512i activations(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, sizeof four);
  return _mm512_set1_epi32(four);
}

// Codes of inputs 16h + 4j .. +3 of a half-block (8 bits: h counts with j).
template <int BITS>
KV_INLINE __m512i codes_of(const std::byte* half, int h, int j) {
  if constexpr (BITS == 8) return _mm512_loadu_si512(half + (4 * h + j) * 64);
  __m512i c = _mm512_loadu_si512(half + j * 64);
  if (h == 1) c = _mm512_srli_epi16(c, 4);
  c = _mm512_and_si512(c, _mm512_set1_epi8(15));
  if constexpr (BITS == 4) return c;
  const int bit = BITS == 5 ? 2 * j + h : 2 * (2 * (j & 1) + h);
  const __m512i plane = _mm512_loadu_si512(half + 256 + (BITS == 6 ? j / 2 * 64 : 0));
  const __m512i raised = bit <= 4 ? _mm512_slli_epi16(plane, static_cast<unsigned>(4 - bit)) : _mm512_srli_epi16(plane, static_cast<unsigned>(bit - 4));
  return _mm512_or_si512(c, _mm512_and_si512(raised, _mm512_set1_epi8(BITS == 5 ? 0x10 : 0x30)));
}

// Sums over inputs [16*h_begin, 16*h_end) of one block for R rows and both halves of a tile, added to dots.
template <int BITS, int R>
KV_INLINE void add_dots(const std::byte* half0, const std::byte* half1, const std::int8_t* q, int h_begin, int h_end, __m512i (&dots)[R][2]) {
#pragma GCC unroll 2
  for (int h = h_begin; h < h_end; ++h) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i c0 = codes_of<BITS>(half0, h, j), c1 = codes_of<BITS>(half1, h, j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i y = activations(q + r * kBlockInputs + 16 * h + 4 * j);
        dots[r][0] = _mm512_dpbusd_epi32(dots[r][0], c0, y);
        dots[r][1] = _mm512_dpbusd_epi32(dots[r][1], c1, y);
      }
    }
  }
}

// One block of 32 inputs, 32 outputs, R rows: sums[r] gets this block's share.
template <WeightForm FORM, int R>
KV_INLINE void tile_block(const std::byte* block, const ActivationPanels& a, std::size_t at, Floats (&sums)[R][2]) {
  constexpr FormTraits t = traits(FORM);
  constexpr unsigned shift = t.zero == 8 ? 3 : t.zero == 16 ? 4 : t.zero == 32 ? 5 : t.zero == 128 ? 7 : 0;
  const std::int8_t* q = a.q + at * kBlockInputs;
  const std::byte* half[2] = {block, block + t.half_bytes()};
  __m512i dots[R][2];
  if constexpr (t.scales == ScaleKind::s2) {
    for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const std::int32_t sum = h == 0 ? a.sum_low[at + r] : a.sum[at + r] - a.sum_low[at + r];
        dots[r][0] = dots[r][1] = _mm512_set1_epi32(-(sum * t.zero));
      }
      add_dots<t.bits, R>(half[0], half[1], q, h, h + 1, dots);
#pragma GCC unroll 2
      for (int side = 0; side < 2; ++side) {
        const Floats s = load(reinterpret_cast<const float*>(half[side] + t.code_bytes) + h * static_cast<int>(kLanes));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
          sums[r][side] = fma({_mm512_cvtepi32_ps(dots[r][side])}, mul(s, broadcast(a.d[at + r])), sums[r][side]);
      }
    }
    return;
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (t.zero != 0) dots[r][0] = dots[r][1] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(_mm512_set1_epi32(a.sum[at + r]), shift));
      else dots[r][0] = dots[r][1] = _mm512_setzero_si512();
    }
    add_dots<t.bits, R>(half[0], half[1], q, 0, 2, dots);
    constexpr bool small = t.scales == ScaleKind::d || t.scales == ScaleKind::dm;
    constexpr bool offset = t.scales == ScaleKind::dm || t.scales == ScaleKind::sm;
#pragma GCC unroll 2
    for (int side = 0; side < 2; ++side) {
      const auto* f16 = reinterpret_cast<const std::uint16_t*>(half[side] + t.code_bytes);
      const auto* f32 = reinterpret_cast<const float*>(half[side] + t.code_bytes);
      const Floats s = small ? load_f16(f16) : load(f32);
      Floats m = zero();
      if constexpr (offset) m = small ? load_f16(f16 + kLanes) : load(f32 + kLanes);
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
