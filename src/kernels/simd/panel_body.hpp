// The f32 micro-kernel and the products built on it. Included inside a class's namespace, after rows_body.hpp.
//
// fma_panel: C[r][g*16 .. +15] = (accumulate ? C : +0) + sum over k in order of A[r][k] * B[k][g*16 .. +15], one fused
// multiply-add each: R rows share each loaded vector of B, G vectors of B share each broadcast of A. Attention scores
// (B = keys), attention output (B = values) and f32 weight products (B = weights) are all this one loop, so a row's chain
// of operations never depends on which rows stand beside it.

KV_INLINE Floats load_as(const float* p) { return load(p); }
struct Half { std::uint16_t bits; };
struct Brain { std::uint16_t bits; };
KV_INLINE Floats load_as(const Half* p) { return load_f16(&p->bits); }
KV_INLINE Floats load_as(const Brain* p) { return load_bf16(&p->bits); }

template <class T>
struct PanelB {
  const T* data;
  std::size_t k_stride;       // elements from one k to the next
  std::size_t group_stride;   // elements from one group of 16 to the next
};
// The same, and on the way the cache lines that are needed next: as many bytes from `next` as B has, evenly spread. In one
// burst they would queue up in front of the loads of B.
template <class T>
struct PanelAhead : PanelB<T> {
  const std::byte* next;
};
template <int G, class T>
KV_INLINE void fetch(const PanelB<T>&, std::size_t) {}
template <int G, class T>
KV_INLINE void fetch(const PanelAhead<T>& b, std::size_t i) {
  constexpr std::size_t kStep = G * kLanes * sizeof(T);
  prefetch(b.next + i * kStep, kStep);
}

struct PanelC {
  float* data;
  std::size_t row_stride;
  std::size_t group_stride;
  bool accumulate;
};

template <int R, int G, class B>
KV_NOINLINE void fma_panel(const float* a, std::size_t a_stride, B b, std::size_t k, PanelC c) {
  Floats sum[R][G];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) sum[r][g] = c.accumulate ? load(c.data + r * c.row_stride + g * c.group_stride) : zero();
  for (std::size_t i = 0; i < k; ++i) {
    fetch<G>(b, i);
    if constexpr (R <= G * 2) {   // fewer rows: their broadcasts stay in registers while the groups pass
      Floats x[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) x[r] = broadcast(a[r * a_stride + i]);
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g) {
        const Floats v = load_as(b.data + i * b.k_stride + g * b.group_stride);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) sum[r][g] = fma(x[r], v, sum[r][g]);
      }
    } else {
      Floats v[G];
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g) v[g] = load_as(b.data + i * b.k_stride + g * b.group_stride);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Floats x = broadcast(a[r * a_stride + i]);
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g) sum[r][g] = fma(x, v[g], sum[r][g]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) store(c.data + r * c.row_stride + g * c.group_stride, sum[r][g]);
}

template <class T>
KV_INLINE PanelB<T> from_group(PanelB<T> b, std::size_t group, std::size_t) {
  b.data += group * b.group_stride;
  return b;
}
template <class T>
KV_INLINE PanelAhead<T> from_group(PanelAhead<T> b, std::size_t group, std::size_t k) {
  b.data += group * b.group_stride;
  b.next += group * k * kLanes * sizeof(T);
  return b;
}

// R rows and `groups` groups, as many groups at a time as the registers hold.
template <int R, class B>
KV_INLINE void panel_groups(const float* a, std::size_t a_stride, B b, std::size_t k, PanelC c, std::size_t groups) {
  constexpr int G = panel_group_count(R);
  std::size_t g = 0;
  const auto at = [&](std::size_t group) { return from_group(b, group, k); };
  const auto to = [&](std::size_t group) { return PanelC{c.data + group * c.group_stride, c.row_stride, c.group_stride, c.accumulate}; };
  for (; g + G <= groups; g += G) fma_panel<R, G>(a, a_stride, at(g), k, to(g));
  if constexpr (G > 1)
    for (; g < groups; ++g) fma_panel<R, 1>(a, a_stride, at(g), k, to(g));
}

// At most kPanelRows rows.
template <class B>
KV_INLINE void panel(std::size_t rows, const float* a, std::size_t a_stride, B b, std::size_t k, PanelC c, std::size_t groups) {
  switch (rows) {
    case 1: return panel_groups<1>(a, a_stride, b, k, c, groups);
    case 2: return panel_groups<2>(a, a_stride, b, k, c, groups);
    case 3: return panel_groups<3>(a, a_stride, b, k, c, groups);
    case 4: return panel_groups<4>(a, a_stride, b, k, c, groups);
    case 5: return panel_groups<5>(a, a_stride, b, k, c, groups);
    default: return panel_groups<6>(a, a_stride, b, k, c, groups);
  }
}
inline constexpr std::size_t kPanelRows = 6;

// One tile's dequantized weights as [2 halves][k][16].
KV_INLINE void unpack_float_tile(WeightForm form, const std::byte* tile, std::size_t k, float* to) {
  const std::size_t element = traits(form).element_bytes;
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::byte* from = tile + (i * kTileOutputs + half * kHalfOutputs) * element;
      Floats x;
      if (form == WeightForm::f32) x = load(reinterpret_cast<const float*>(from));
      else if (form == WeightForm::f16) x = load_f16(reinterpret_cast<const std::uint16_t*>(from));
      else x = load_bf16(reinterpret_cast<const std::uint16_t*>(from));
      store(to + (half * k + i) * kLanes, x);
    }
  }
}

// Code of input `i` (0..31) of a half-block, minus zero, as floats of 16 outputs.
KV_INLINE Floats half_block_codes(const FormTraits& t, const std::byte* codes, int i) {
  constexpr int kVector = 64;
  const int byte = 8 * (i % 4);
  if (t.bits == 8) return centred(field(codes + i / 4 * kVector, byte, 255), t.zero);
  const int number = 2 * (i % 16 / 4) + i / 16;   // of the code within its byte
  const auto plane = [&](const std::byte* at, int width) {
    const int bit = number * width;
    return field(at + bit / 8 * kVector, byte + bit % 8, (1 << width) - 1);
  };
  const int low = t.low_plane(), high = t.high_plane();
  Integers code = plane(codes, low);
  if (high > 0) code = joined(code, plane(codes + low * kVector, high), low);
  if (t.table) code = looked_up(code, table_codes());
  return centred(code, t.zero);
}

KV_INLINE void unpack_half_block(const FormTraits& t, const std::byte* half, float* to) {
  const std::byte* scales = half + t.code_bytes;
  const bool offset = has_offset(t.scales);
  for (int h = 0; h < 2; ++h) {
    const Floats scale = scale_of(t, scales, h), second = offset_of(t, scales, h);
    for (int i = 16 * h; i < 16 * h + 16; ++i) {
      Floats value = mul(scale, half_block_codes(t, half, i));
      if (offset) value = add(value, second);
      store(to + i * static_cast<int>(kLanes), value);
    }
  }
}

KV_INLINE void unpack_tile(const PackedMatrix& w, std::size_t index, float* to) {
  const FormTraits t = traits(w.form);
  const std::byte* tile = w.tile(index);
  if (t.bits == 0) return unpack_float_tile(w.form, tile, w.k, to);
  for (std::size_t block = 0; block < w.k / kBlockInputs; ++block)
    for (std::size_t half = 0; half < 2; ++half)
      unpack_half_block(t, tile + (block * 2 + half) * t.half_bytes(), to + (half * w.k + block * kBlockInputs) * kLanes);
}

// The finished sums of one row and up to 16 outputs to their place.
KV_INLINE void put(Floats sum, MatmulOutput out, std::size_t row, std::size_t column, std::size_t n) {
  float* to = out.data + row * out.stride + column;
  if (column + kLanes <= n) return store(to, out.add ? add(load(to), sum) : sum);
  if (column >= n) return;
  store_tail(to, n - column, out.add ? add(load_tail(to, n - column), sum) : sum);
}

void matmul_f32(const PackedMatrix& w, const float* x, std::size_t x_stride, std::size_t rows, std::size_t tile_begin,
                std::size_t tile_end, float* scratch, MatmulOutput out) {
  alignas(64) float sums[kPanelRows][kTileOutputs];
  for (std::size_t tile = tile_begin; tile < tile_end; ++tile) {
    unpack_tile(w, tile, scratch);
    for (std::size_t row = 0; row < rows; row += kPanelRows) {
      const std::size_t count = rows - row < kPanelRows ? rows - row : kPanelRows;
      panel(count, x + row * x_stride, x_stride, PanelB<float>{scratch, kLanes, w.k * kLanes}, w.k,
            PanelC{&sums[0][0], kTileOutputs, kLanes, false}, 2);
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t half = 0; half < 2; ++half)
          put(load(&sums[r][half * kLanes]), out, row + r, tile * kTileOutputs + half * kLanes, w.n);
    }
  }
}
