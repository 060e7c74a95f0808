// Row-wise kernels on 16 lanes: exp, norm, gated silu, quantization of activations, encoding of keys and values.
// Included inside a class's namespace, after its lanes. Contracts: kernels/kernels.hpp.

// Asks for bytes that will be read soon.
KV_INLINE void prefetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

// Loads before it stay before it. Without it the compiler shares broadcasts between far-apart uses and spills them.
KV_INLINE void keep_order() { asm volatile("" ::: "memory"); }

// exp_f32 of base/fixed_math.hpp, operation by operation.
KV_INLINE Floats exp_lanes(Floats x) {
  using namespace exp_constants;
  const Floats at_most = min(x, broadcast(kHighest));
  const Floats shifted = fma(at_most, broadcast(kLog2E), broadcast(kRound));
  const Floats n = sub(shifted, broadcast(kRound));
  Floats r = fma(n, broadcast(-kLn2High), at_most);
  r = fma(n, broadcast(-kLn2Low), r);
  Floats p = fma(broadcast(kC6), r, broadcast(kC5));
  p = fma(p, r, broadcast(kC4));
  p = fma(p, r, broadcast(kC3));
  p = fma(p, r, broadcast(kC2));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));
  return zero_unless_at_least(x, broadcast(kLowest), add_exponent(p, shifted));
}

// The last n < 16 floats of a row, the other lanes +0.
KV_INLINE Floats load_tail(const float* p, std::size_t n) {
  alignas(64) float lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, n * sizeof(float));
  return load(lanes);
}
KV_INLINE void store_tail(float* p, std::size_t n, Floats x) {
  alignas(64) float lanes[kLanes];
  store(lanes, x);
  __builtin_memcpy(p, lanes, n * sizeof(float));
}

void rms_norm(const float* x, const float* weight, std::size_t n, float epsilon, float* y) {
  const std::size_t whole = n / kLanes * kLanes;
  Floats squares = zero();
  for (std::size_t i = 0; i < whole; i += kLanes) squares = fma(load(x + i), load(x + i), squares);
  if (whole < n) {
    const Floats tail = load_tail(x + whole, n - whole);
    squares = fma(tail, tail, squares);
  }
  const Floats r = broadcast(1.0f / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(n) + epsilon));
  for (std::size_t i = 0; i < whole; i += kLanes) store(y + i, mul(mul(load(x + i), r), load(weight + i)));
  if (whole < n)
    store_tail(y + whole, n - whole, mul(mul(load_tail(x + whole, n - whole), r), load_tail(weight + whole, n - whole)));
}

KV_INLINE Floats silu_mul_lanes(Floats gate, Floats up) {
  const Floats denominator = add(broadcast(1.0f), exp_lanes(sub(broadcast(-0.0f), gate)));
  return mul(div(gate, denominator), up);
}

KV_INLINE Floats gelu_mul_lanes(Floats gate, Floats up) {
  const Floats u = mul(fma(mul(gate, gate), broadcast(kGeluCube), broadcast(kGeluLinear)), gate);
  return mul(div(gate, add(broadcast(1.0f), exp_lanes(u))), up);
}

// gate = one(gate, up), sixteen at a time.
template <class One>
KV_INLINE void gate_rows(float* gate, const float* up, std::size_t n, One one) {
  const std::size_t whole = n / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) store(gate + i, one(load(gate + i), load(up + i)));
  if (whole < n) store_tail(gate + whole, n - whole, one(load_tail(gate + whole, n - whole), load_tail(up + whole, n - whole)));
}

void silu_mul(float* gate, const float* up, std::size_t n) {
  gate_rows(gate, up, n, [](Floats g, Floats u) { return silu_mul_lanes(g, u); });
}

void gelu_mul(float* gate, const float* up, std::size_t n) {
  gate_rows(gate, up, n, [](Floats g, Floats u) { return gelu_mul_lanes(g, u); });
}

void quantize(const float* x, std::size_t x_stride, std::size_t row_begin, std::size_t row_end, ActivationPanels panels) {
  for (std::size_t row = row_begin; row < row_end; ++row) {
    for (std::size_t block = 0; block < panels.k / kBlockInputs; ++block) {
      const float* from = x + row * x_stride + block * kBlockInputs;
      const std::size_t at = panels.block_index(row, block);
      const Floats low = load(from), high = load(from + kLanes);
      const float largest = max_lanes(older_max(magnitude(low), magnitude(high)));
      const float d = largest / 127.0f;
      const Floats inverse = broadcast(largest >= kSmallestActivation ? 127.0f / largest : 0.0f);
      std::int8_t* q = panels.q + at * kBlockInputs;
      const std::int32_t sum_low = store_rounded(q, mul(low, inverse));
      const std::int32_t sum = sum_low + store_rounded(q + kLanes, mul(high, inverse));
      panels.d[at] = d;
      panels.ds[at] = d * static_cast<float>(sum);
      panels.sum[at] = sum;
      panels.sum_low[at] = sum_low;
    }
  }
}

// Eight or sixteen values at a time; head_dim is a multiple of 8.
KV_INLINE void encode_row(const float* from, std::size_t n, format::KvType type, std::uint16_t* to) {
  std::size_t i = 0;
  if (type == format::KvType::f16)
    for (; i + kLanes <= n; i += kLanes) store_f16(to + i, load(from + i));
  for (; i < n; ++i) to[i] = type == format::KvType::f16 ? format::encode_f16(from[i]) : format::encode_bf16(from[i]);
}

void store_kv(const float* k, const float* v, std::size_t head_dim, format::KvFormat format, std::byte* k_to, std::byte* v_to) {
  if (format.k == format::KvType::f32) {
    for (std::size_t c = 0; c < head_dim; ++c) __builtin_memcpy(k_to + c * format::kKeysPerTile * sizeof(float), k + c, sizeof(float));
  } else {
    std::uint16_t codes[16];
    for (std::size_t c = 0; c < head_dim; c += 8) {   // head_dim is a multiple of 8
      const std::size_t n = head_dim - c >= 16 ? 16 : 8;
      encode_row(k + c, n, format.k, codes);
      for (std::size_t i = 0; i < n; ++i)
        __builtin_memcpy(k_to + (c + i) * format::kKeysPerTile * sizeof(std::uint16_t), codes + i, sizeof(std::uint16_t));
      if (n == 16) c += 8;
    }
  }
  if (format.v == format::KvType::f32) __builtin_memcpy(v_to, v, head_dim * sizeof(float));
  else encode_row(v, head_dim, format.v, reinterpret_cast<std::uint16_t*>(v_to));
}
