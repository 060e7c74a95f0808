// Attention over one span of 256 keys. Included inside a class's namespace, after panel_body.hpp.
// Contracts: kernels/kernels.hpp. The order of one line's operations is fixed there; what is chosen here is only which
// lines share a loaded vector, and where K and V are converted to f32:
//   few lines (decode):   K and V are read in their stored form, each row once, converted in registers;
//   many lines (prefill): K tiles and V rows are converted to f32 once for all lines of the tile.

inline constexpr std::size_t kDirectLines = 2 * kPanelRows;   // up to so many lines read the stored form
inline constexpr std::size_t kKeys = format::kSpanTokens;

// A tile's view of one span.
struct Span {
  const AttentionTile* tile;
  const AttentionQuery* query;
  const format::BlockLayout* layout;
  std::size_t index, group, lines, head_dim, padded;
  std::size_t first, keys;   // keys [first, keys) are those that some line sees: the first row reaches furthest back, the last one furthest on
  std::size_t block_tokens;
  float *q, *weights, *k_floats, *v_floats;   // scratch: scaled queries, scores then weights, K tiles, V groups

  Span(const AttentionTile& t, std::uint32_t span, float* scratch)
      : tile(&t), query(t.query), layout(&t.query->kv->layout), index(span), group(t.group()), lines(t.lines()),
        head_dim(layout->head_dim()), padded((head_dim + kLanes - 1) / kLanes * kLanes),
        first(begin(0)), keys(visible(t.row_end - t.row_begin - 1)), block_tokens(layout->block_tokens()), q(scratch),
        weights(q + lines * padded), k_floats(weights + lines * kKeys), v_floats(k_floats + kKeys * padded) {}

  // How many keys of the span lie before `key` of the sequence.
  KV_INLINE std::size_t in_span(std::size_t key) const {
    const std::size_t start = index * kKeys;
    if (key <= start) return 0;
    return key - start < kKeys ? key - start : kKeys;
  }
  KV_INLINE std::uint32_t position(std::size_t row) const {
    return query->first_position + tile->row_begin + static_cast<std::uint32_t>(row);
  }
  // Row `row` of the tile sees keys [begin(row), visible(row)) of the span; none where begin is not less.
  KV_INLINE std::size_t visible(std::size_t row) const { return in_span(std::size_t{position(row)} + 1); }
  KV_INLINE std::size_t begin(std::size_t row) const { return in_span(query->reach.first_key(position(row))); }
  KV_INLINE std::size_t visible_to_line(std::size_t line) const { return visible(line / group); }
  KV_INLINE std::size_t begin_of_line(std::size_t line) const { return begin(line / group); }
  // Where whole tiles begin that hold key `first`.
  KV_INLINE std::size_t first_tile() const { return first / format::kKeysPerTile * format::kKeysPerTile; }
  // The block that holds key `key` of the span.
  KV_INLINE const std::byte* block(std::size_t key) const {
    return query->kv->blocks.address(query->blocks[(index * kKeys + key) / block_tokens - query->first_block]);
  }
  KV_INLINE std::size_t offset(std::size_t key) const { return (index * kKeys + key) % block_tokens; }
  KV_INLINE const std::byte* k_tile(std::size_t key) const {
    return block(key) + layout->k_offset(query->layer, tile->kv_head, static_cast<std::uint32_t>(offset(key)));
  }
  KV_INLINE const std::byte* v_row(std::size_t key) const {
    return block(key) + layout->v_offset(query->layer, tile->kv_head, static_cast<std::uint32_t>(offset(key)));
  }
};

KV_INLINE void scale_queries(const Span& s) {
  for (std::size_t line = 0; line < s.lines; ++line) {
    const float* from = s.query->q + (s.tile->row_begin + line / s.group) * s.query->q_stride +
                        (s.tile->kv_head * s.group + line % s.group) * s.head_dim;
    float* to = s.q + line * s.padded;
    for (std::size_t c = 0; c < s.head_dim; ++c) to[c] = from[c] * s.query->scale;
  }
}

// Scores of lines [first, last) against one K tile of 16 keys, starting at key `key` of the span.
template <class T>
KV_INLINE void score_tile(const Span& s, std::size_t first, std::size_t last, std::size_t key, const T* k_tile) {
  for (std::size_t line = first; line < last; line += kPanelRows) {
    const std::size_t count = last - line < kPanelRows ? last - line : kPanelRows;
    panel(count, s.q + line * s.padded, s.padded, PanelB<T>{k_tile, format::kKeysPerTile, 0}, s.head_dim,
          PanelC{s.weights + line * kKeys + key, kKeys, kLanes, false}, 1);
  }
}

// All lines of a tile against B in its stored form, in two even panels where one cannot hold them: the second finds B in
// the cache.
template <class T>
KV_INLINE void panel_of_lines(const Span& s, const float* a, std::size_t a_stride, const PanelAhead<T>& b, std::size_t k, PanelC c,
                              std::size_t groups) {
  if (s.lines <= kPanelRows) return panel(s.lines, a, a_stride, b, k, c, groups);
  const std::size_t first = (s.lines + 1) / 2;
  panel(first, a, a_stride, b, k, c, groups);
  c.data += first * c.row_stride;
  panel(s.lines - first, a + first * a_stride, a_stride, PanelB<T>(b), k, c, groups);
}

template <class T>
KV_INLINE void scores_direct(const Span& s) {
  const std::size_t tile_elements = s.head_dim * format::kKeysPerTile;
  for (std::size_t key = s.first_tile(); key < s.keys;) {   // a block at a time: its tiles are neighbours
    const std::size_t in_block = s.block_tokens - s.offset(key);
    const std::size_t keys = s.keys - key < in_block ? s.keys - key : in_block;
    const std::byte* tiles = s.k_tile(key);
    const PanelAhead<T> b{{reinterpret_cast<const T*>(tiles), format::kKeysPerTile, tile_elements}, s.v_row(key)};
    panel_of_lines(s, s.q, s.padded, b, s.head_dim, PanelC{s.weights + key, kKeys, kLanes, false}, (keys + kLanes - 1) / kLanes);
    key += keys;
  }
}

// The tile's keys in f32, then all lines that see any of them.
template <class T>
KV_INLINE void scores_converted(const Span& s) {
  const std::size_t rows = s.lines / s.group;
  std::size_t row = 0;     // rows before it see none of this tile, nor of later ones
  std::size_t reach = 0;   // rows before it look back on this tile
  for (std::size_t key = s.first_tile(); key < s.keys; key += format::kKeysPerTile) {
    const T* from = reinterpret_cast<const T*>(s.k_tile(key));
    const float* tile = s.k_floats;
    if constexpr (std::is_same_v<T, float>) tile = from;
    else
      for (std::size_t c = 0; c < s.head_dim; ++c) store(s.k_floats + c * kLanes, load_as(from + c * kLanes));
    while (row < rows && s.visible(row) <= key) ++row;
    while (reach < rows && s.begin(reach) < key + format::kKeysPerTile) ++reach;
    if (row < reach) score_tile(s, row * s.group, reach * s.group, key, tile);
  }
}

// Scores to weights in place: exp(score - max) over the keys [begin, keys) a line sees, +0 from there up to the last tile any
// line uses.
KV_INLINE void soften(const Span& s, std::size_t begin, std::size_t keys, float* scores, float& max_to, float& sum_to) {
  const Floats none = broadcast(-__builtin_inff());
  const std::size_t low = begin / kLanes * kLanes;
  const std::size_t whole = keys / kLanes * kLanes, used = (s.keys + kLanes - 1) / kLanes * kLanes;
  if (low < begin) store(scores + low, first_lanes(begin - low, none, load(scores + low)));   // left behind: below any score, weight +0
  Floats largest = none;
  for (std::size_t i = low; i < whole; i += kLanes) largest = older_max(largest, load(scores + i));
  if (whole < keys) {   // a lane without a key keeps what it has: the older value, whatever it is
    const Floats next = older_max(largest, load(scores + whole));
    largest = first_lanes(keys - whole, next, largest);
  }
  max_to = max_lanes(largest);
  const Floats max = broadcast(max_to);
  Floats sum = zero();
  for (std::size_t i = low; i < whole; i += kLanes) {
    const Floats p = exp_lanes(sub(load(scores + i), max));
    store(scores + i, p);
    sum = add(sum, p);
  }
  if (whole < keys) {
    const Floats p = first_lanes(keys - whole, exp_lanes(sub(load(scores + whole), max)), zero());
    store(scores + whole, p);
    sum = add(sum, p);
  }
  for (std::size_t i = (keys + kLanes - 1) / kLanes * kLanes; i < used; i += kLanes) store(scores + i, zero());
  sum_to = sum_lanes(sum);
}

// out[lines first .. first+count) += weights x values over keys [begin, end): one channel group of 16 at a time where the
// values are in f32 groups.
KV_INLINE void values_converted(const Span& s, const SpanState& state, std::size_t first, std::size_t count, std::size_t begin,
                                std::size_t end) {
  if (begin >= end) return;
  const float* weights = s.weights + first * kKeys + begin;
  const std::size_t groups = s.head_dim / kLanes;
  const PanelB<float> b{s.v_floats + begin * kLanes, kLanes, kKeys * kLanes};
  panel(count, weights, kKeys, b, end - begin, PanelC{state.out + first * s.head_dim, s.head_dim, kLanes, true}, groups);
  if (s.padded == s.head_dim) return;
  alignas(64) float tail[kPanelRows][kLanes];   // head_dim ends in half a group
  const std::size_t c = groups * kLanes, n = s.head_dim - c;
  for (std::size_t r = 0; r < count; ++r) store(tail[r], load_tail(state.out + (first + r) * s.head_dim + c, n));
  panel(count, weights, kKeys, PanelB<float>{b.data + groups * b.group_stride, kLanes, 0}, end - begin, PanelC{&tail[0][0], kLanes, 0, true}, 1);
  for (std::size_t r = 0; r < count; ++r) store_tail(state.out + (first + r) * s.head_dim + c, n, load(tail[r]));
}

template <class T>
KV_INLINE void convert_values(const Span& s) {
  for (std::size_t key = s.first; key < s.keys; ++key) {
    const T* from = reinterpret_cast<const T*>(s.v_row(key));
    std::size_t c = 0;
    for (; c + kLanes <= s.head_dim; c += kLanes) store(s.v_floats + (c / kLanes * kKeys + key) * kLanes, load_as(from + c));
    if (c < s.head_dim) {
      alignas(64) T half[kLanes] = {};
      __builtin_memcpy(half, from + c, (s.head_dim - c) * sizeof(T));
      store(s.v_floats + (c / kLanes * kKeys + key) * kLanes, load_as(half));
    }
  }
}

// Lines in sixes. Their rows see different first and last keys: the common ones together, those before and after line by
// line, so that no line ever multiplies a value it may not see.
KV_INLINE void values_by_lines(const Span& s, const SpanState& state) {
  for (std::size_t line = 0; line < s.lines; line += kPanelRows) {
    const std::size_t count = s.lines - line < kPanelRows ? s.lines - line : kPanelRows;
    const std::size_t to = s.visible_to_line(line), from = s.begin_of_line(line + count - 1) < to ? s.begin_of_line(line + count - 1) : to;
    for (std::size_t r = 0; r < count; ++r) values_converted(s, state, line + r, 1, s.begin_of_line(line + r), from);
    values_converted(s, state, line, count, from, to);
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t begin = s.begin_of_line(line + r);
      values_converted(s, state, line + r, 1, begin > to ? begin : to, s.visible_to_line(line + r));
    }
  }
}

// One row, head_dim a multiple of 16: values in their stored form, a block at a time; meanwhile the next block's keys come,
// at the end those of the next span.
template <class T>
KV_INLINE void values_direct(const Span& s, const SpanState& state) {
  const std::size_t stored = std::size_t{s.query->first_position} + s.tile->row_end - s.index * kKeys;   // from this span on
  for (std::size_t key = s.first; key < s.keys;) {
    const std::size_t in_block = s.block_tokens - s.offset(key);
    const std::size_t keys = s.keys - key < in_block ? s.keys - key : in_block;
    const std::byte* row = s.v_row(key);
    const PanelAhead<T> b{{reinterpret_cast<const T*>(row), s.head_dim, kLanes}, key + in_block < stored ? s.k_tile(key + in_block) : row};
    panel_of_lines(s, s.weights + key, kKeys, b, keys, PanelC{state.out, s.head_dim, kLanes, true}, s.head_dim / kLanes);
    key += keys;
  }
}

template <class Fn>
KV_INLINE void with_type(format::KvType type, Fn&& fn) {
  if (type == format::KvType::f32) fn(static_cast<const float*>(nullptr));
  else if (type == format::KvType::f16) fn(static_cast<const Half*>(nullptr));
  else fn(static_cast<const Brain*>(nullptr));
}

void attention_span(const AttentionTile& tile, std::uint32_t span, SpanState state, float* scratch) {
  const Span s(tile, span, scratch);
  const bool one_row = tile.row_end - tile.row_begin == 1;
  const bool direct = one_row && s.lines <= kDirectLines && s.padded == s.head_dim;
  scale_queries(s);
  with_type(s.layout->format().k, [&](auto* t) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(t)>>;
    if (direct) scores_direct<T>(s);
    else scores_converted<T>(s);
  });
  for (std::size_t line = 0; line < s.lines; ++line) {
    for (std::size_t c = 0; c < s.head_dim; ++c) state.out[line * s.head_dim + c] = 0.0f;
    const std::size_t keys = s.visible_to_line(line), begin = s.begin_of_line(line);
    if (begin < keys) {
      soften(s, begin, keys, s.weights + line * kKeys, state.max[line], state.sum[line]);
    } else {
      state.max[line] = -__builtin_inff();
      state.sum[line] = 0.0f;
    }
  }
  with_type(s.layout->format().v, [&](auto* t) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(t)>>;
    if (direct) return values_direct<T>(s, state);
    convert_values<T>(s);
    values_by_lines(s, state);
  });
}

KV_INLINE void copy_line(const float* from, float* to, std::size_t n) {
  for (std::size_t c = 0; c < n; ++c) to[c] = from[c];
}

void attention_merge(SpanState into, SpanState next, std::size_t lines, std::size_t head_dim) {
  for (std::size_t line = 0; line < lines; ++line) {
    const float* from = next.out + line * head_dim;
    float* to = into.out + line * head_dim;
    if (next.max[line] == -__builtin_inff()) continue;
    if (into.max[line] == -__builtin_inff()) {
      into.max[line] = next.max[line];
      into.sum[line] = next.sum[line];
      copy_line(from, to, head_dim);
      continue;
    }
    const float m = into.max[line] > next.max[line] ? into.max[line] : next.max[line];
    const float a = exp_f32(into.max[line] - m), b = exp_f32(next.max[line] - m);
    into.sum[line] = __builtin_fmaf(into.sum[line], a, next.sum[line] * b);
    into.max[line] = m;
    std::size_t c = 0;
    for (; c + kLanes <= head_dim; c += kLanes)
      store(to + c, fma(load(to + c), broadcast(a), mul(load(from + c), broadcast(b))));
    for (; c < head_dim; ++c) to[c] = __builtin_fmaf(to[c], a, from[c] * b);
  }
}

KV_INLINE float inverse_of(float max, float sum, const float* sink) {
  if (sink == nullptr) return 1.0f / sum;
  const float m = max > *sink ? max : *sink;
  const float a = exp_f32(max - m), b = exp_f32(*sink - m);
  return a / __builtin_fmaf(sum, a, b);
}

void attention_finish(const AttentionTile& tile, SpanState state) {
  const AttentionQuery& query = *tile.query;
  const std::size_t head_dim = query.kv->layout.head_dim(), group = tile.group();
  for (std::size_t line = 0; line < tile.lines(); ++line) {
    const std::size_t head = tile.kv_head * group + line % group;
    const float inverse = inverse_of(state.max[line], state.sum[line], query.sinks == nullptr ? nullptr : query.sinks + head);
    float* to = query.out + (tile.row_begin + line / group) * query.out_stride + head * head_dim;
    for (std::size_t c = 0; c < head_dim; ++c) to[c] = state.out[line * head_dim + c] * inverse;
  }
}
