// The kernels of a forward pass, as one table of functions per instruction class. All classes give the same bits: each
// function's comment is the specification of its arithmetic, `exact/` is that specification as plain scalar code,
// `simd/` runs it on 16 lanes, and the tests compare with ==. `reference/` judges accuracy in double.
//
// Thread rule: functions are pure in their arguments; a caller may run them on several threads over disjoint outputs.
// Words: fma(a, b, c) is one rounding; every other operation rounds on its own; sums run in the order written.
// "16-lane sum of x": lane l adds x[l], x[l+16], ... in order from +0; then lanes i and i+8, i+4, i+2, i+1 are added.
// "16-lane max" likewise, with max(a, b) = a > b ? a : b, a the older value, from -infinity.
// Errors: none; what cannot hold is checked by the caller (shapes come from a validated model).
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/block_layout.hpp"
#include "format/reach.hpp"
#include "kernels/packed_matrix.hpp"
#include "platform/isa.hpp"

namespace kvasir::kernels {

// A block of activations below this counts as zeros: 127 / a would overflow for a denormal a.
inline constexpr float kSmallestActivation = 0x1p-100f;

// Activations as 8-bit integers: per row and block of 32 inputs
//   a = max |x|;  d = a / 127;  inv = a >= kSmallestActivation ? 127 / a : 0
//   q = round_to_nearest_even(x * inv) in [-127, 127]
//   sum = sum of q;  ds = d * float(sum)     (what a weight's zero and a weight's offset multiply)
//   sum_low = sum of the first 16 q           (for weights whose scale covers 16 inputs)
// Rows are grouped in panels of `panel_rows` so that a kernel's row tile is one short stream:
//   q  [rows/panel_rows][k/32][panel_rows][32],  the others  [rows/panel_rows][k/32][panel_rows]
struct ActivationPanels {
  std::int8_t* q = nullptr;
  float* d = nullptr;
  float* ds = nullptr;
  std::int32_t* sum = nullptr;
  std::int32_t* sum_low = nullptr;
  std::size_t k = 0;
  std::size_t panel_rows = 1;

  // Buffer sizes in elements for `rows` rows: q needs q_elements, each of the others scale_elements.
  static std::size_t q_elements(std::size_t rows, std::size_t k, std::size_t panel_rows) {
    return (rows + panel_rows - 1) / panel_rows * panel_rows * k;
  }
  static std::size_t scale_elements(std::size_t rows, std::size_t k, std::size_t panel_rows) {
    return q_elements(rows, k, panel_rows) / kBlockInputs;
  }
  std::size_t block_index(std::size_t row, std::size_t block) const {   // counts (row, block) pairs
    return (row / panel_rows * (k / kBlockInputs) + block) * panel_rows + row % panel_rows;
  }
};

// Where a matmul writes: row r, output o at data[r * stride + o].
// `add`: the finished sum is added to what stands there (the residual), one rounding.
struct MatmulOutput {
  float* data = nullptr;
  std::size_t stride = 0;
  bool add = false;
};

// -2 sqrt(2/pi) and that times 0.044715, of gelu_mul.
inline constexpr float kGeluLinear = -0x1.988454p+0f, kGeluCube = -0x1.2444f2p-4f;

// One sequence's part of an attention call, one layer.
struct AttentionQuery {
  const format::PagedKvView* kv = nullptr;
  std::uint32_t layer = 0;             // slot in the cache group
  const BlockId* blocks = nullptr;     // the sequence's blocks in token order, from number first_block on
  std::uint32_t first_block = 0;       // the blocks before it are left behind: no row reaches them
  std::uint32_t heads = 0;             // query heads; a multiple of the layout's kv_heads
  const float* q = nullptr;            // [rows][heads][head_dim], row stride q_stride floats
  std::size_t q_stride = 0;
  float* out = nullptr;                // the same shape, row stride out_stride floats
  std::size_t out_stride = 0;
  std::uint32_t first_position = 0;    // absolute position of row 0
  format::Reach reach = {};            // row r sees keys reach.first_key(first_position + r) .. first_position + r
  float scale = 1;                     // q is multiplied by it first
  const float* sinks = nullptr;        // [heads]: a score more in each softmax, whose value is zero; null = none

  // The first and the last span that row `row` sees keys of.
  std::uint32_t first_span(std::uint32_t row) const { return reach.first_key(first_position + row) / format::kSpanTokens; }
  std::uint32_t last_span(std::uint32_t row) const { return (first_position + row) / format::kSpanTokens; }
};

// Rows [row_begin, row_end) of a query and the `heads / kv_heads` query heads of one KV head: "lines". Line index =
// (row - row_begin) * group + head within the group.
struct AttentionTile {
  const AttentionQuery* query = nullptr;
  std::uint32_t kv_head = 0;
  std::uint32_t row_begin = 0;
  std::uint32_t row_end = 0;
  std::uint32_t group() const { return query->heads / query->kv->layout.kv_heads(); }
  std::uint32_t lines() const { return (row_end - row_begin) * group(); }
};

// What attention over one span (or several merged ones) yields, per line: max score, sum of weights, weighted values.
// A line that sees no key of the span has max = -infinity and is skipped by merge.
struct SpanState {
  float* max = nullptr;   // [lines]
  float* sum = nullptr;   // [lines]
  float* out = nullptr;   // [lines][head_dim]
};

inline constexpr std::size_t kMaxAttentionLines = 96;   // of one tile

// Floats of scratch that attention_span needs for `lines` lines.
constexpr std::size_t attention_scratch_floats(std::size_t lines, std::size_t head_dim) {
  const std::size_t padded = (head_dim + 15) / 16 * 16;
  return lines * padded                                // scaled queries
         + lines * format::kSpanTokens                 // scores, then weights
         + 2 * format::kSpanTokens * padded            // K and V of the span in f32
         + 64;
}

struct KernelSet {
  platform::Isa isa = platform::Isa::scalar;
  std::size_t panel_rows = 16;   // rows of a full activation panel; fewer rows than that: one panel of that many

  // Rows [row_begin, row_end) of x ([rows][k], row stride x_stride) into `panels`.
  void (*quantize)(const float* x, std::size_t x_stride, std::size_t row_begin, std::size_t row_end, ActivationPanels panels);

  // Integer forms x quantized activations, tiles [tile_begin, tile_end) for all `rows` rows. Per output, from F = +0, for
  // each block in order, with dot = sum of (code - zero) * q, exact in int32:
  //   d, s:    F = fma(float(dot), s * a.d, F)
  //   dm, sm:  F = fma(float(dot), s * a.d, F);  F = fma(m, a.ds, F)
  //   s2, f2:  F = fma(float(dot of inputs 0-15), s0 * a.d, F);  F = fma(float(dot of inputs 16-31), s1 * a.d, F)
  //   f2m:     for h = 0, then 1, with dot_h and sum_h those of the half's 16 inputs (sum_0 = a.sum_low, sum_1 = a.sum - sum_0):
  //            F = fma(float(dot_h), s_h * a.d, F);  F = fma(m_h, a.d * float(sum_h), F)
  void (*matmul_int8)(const PackedMatrix& w, const ActivationPanels& a, std::size_t rows, std::size_t tile_begin,
                      std::size_t tile_end, MatmulOutput out);

  // Any form x f32 activations. Per output, from F = +0: F = fma(x[k], W[n][k], F) for k in order, W the exact
  // dequantized value. `scratch`: k * 32 floats, 64-byte aligned.
  void (*matmul_f32)(const PackedMatrix& w, const float* x, std::size_t x_stride, std::size_t rows, std::size_t tile_begin,
                     std::size_t tile_end, float* scratch, MatmulOutput out);

  // Row `row` of W (one output's k weights, dequantized) into `values`: the embedding look-up of a tied matrix.
  void (*unpack_row)(const PackedMatrix& w, std::size_t row, float* values);

  // y = (x * r) * weight with r = 1 / sqrt(s / float(n) + epsilon), s = 16-lane sum of squares by fma(x, x, lane).
  // x and y: n floats; y may be x.
  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float epsilon, float* y);

  // gate[i] = (gate[i] / (1 + exp_f32(-gate[i]))) * up[i]
  void (*silu_mul)(float* gate, const float* up, std::size_t n);

  // GELU by its tanh approximation, 0.5 x (1 + tanh(z)) with z = sqrt(2/pi) (x + 0.044715 x^3), as x / (1 + e^(-2z)):
  //   u = fma(x * x, kGeluCube, kGeluLinear) * x  (-2z);  gate[i] = (x / (1 + exp_f32(u))) * up[i]   with x = gate[i]
  void (*gelu_mul)(float* gate, const float* up, std::size_t n);

  // One row of one head, head_dim floats, into its place in a block: encode K and V (format/kv_format.hpp).
  // k_to: first element (channel stride format::kKeysPerTile elements); v_to: contiguous.
  void (*store_kv)(const float* k, const float* v, std::size_t head_dim, format::KvFormat format, std::byte* k_to, std::byte* v_to);

  // Attention of a tile over span `span` (keys 256*span .. 256*span+255 that the line sees: causal edge and reach; at least one
  // line sees one):
  //   score = sum over channels in order, from +0: fma(q[c] * scale, k[c], s)
  //   max = 16-lane max over the visible keys (lane = key % 16);  p = exp_f32(score - max), 0 for keys not visible
  //   sum = 16-lane sum of p over the span's 256 slots;  out[c] = fma(p, v[c], out[c]) over visible keys in order, from +0
  void (*attention_span)(const AttentionTile& tile, std::uint32_t span, SpanState state, float* scratch);

  // into = into then next, per line: m = max(into.max, next.max); a = exp_f32(into.max - m); b = exp_f32(next.max - m);
  // sum = fma(into.sum, a, next.sum * b); out[c] = fma(into.out[c], a, next.out[c] * b); into.max = m.
  // A line whose next.max is -infinity is left alone; one whose into.max is -infinity takes next as it is.
  void (*attention_merge)(SpanState into, SpanState next, std::size_t lines, std::size_t head_dim);

  // The tile's lines to their place in query->out: out[c] * inverse, with inverse = 1 / sum; where there are sinks:
  //   m = max(max, sink); a = exp_f32(max - m); b = exp_f32(sink - m); inverse = a / fma(sum, a, b)
  void (*attention_finish)(const AttentionTile& tile, SpanState state);
};

// The table of a class. REQUIRES: platform::has_isa(isa).
const KernelSet& kernel_set(platform::Isa isa);

// Rotates pairs of `head` (dim rotated floats) by the angles whose cosines and sines are given ([dim/2] each):
//   a' = a * cos - b * sin;  b' = a * sin + b * cos      (plain operations, no fma: the same code on every class)
// interleaved: (a, b) = (head[2i], head[2i+1]); halves: (head[i], head[i + dim/2]).
void rope_interleaved(float* head, std::size_t dim, const float* cosines, const float* sines);
void rope_halves(float* head, std::size_t dim, const float* cosines, const float* sines);

}  // namespace kvasir::kernels
