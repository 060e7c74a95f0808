#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/fixed_math.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/exact/fma_clones.hpp"
#include "kernels/exact/lanes.hpp"
#include "kernels/exact/unpack.hpp"

namespace kvasir::kernels::exact {
namespace {

using format::kSpanTokens;
constexpr float kNoKey = -std::numeric_limits<float>::infinity();

// Where line `line` of a tile stands: its row of the query and its head.
struct Line {
  std::size_t row = 0;
  std::size_t head = 0;
  Line(const AttentionTile& tile, std::size_t line)
      : row(tile.row_begin + line / tile.group()), head(tile.kv_head * tile.group() + line % tile.group()) {}
};

// The keys [begin, end) of the span that row `row` sees; begin = end: none.
struct Visible {
  std::size_t begin = 0, end = 0;
  Visible(const AttentionQuery& query, std::size_t row, std::uint32_t span) {
    const auto position = static_cast<std::uint32_t>(query.first_position + row);
    const std::size_t start = std::size_t{span} * kSpanTokens;
    const auto in_span = [start](std::size_t key) { return key <= start ? 0 : std::min<std::size_t>(key - start, kSpanTokens); };
    end = in_span(std::size_t{position} + 1);
    begin = std::min(in_span(query.reach.first_key(position)), end);
  }
};

float load(format::KvType type, const std::byte* from) {
  return float_at(format::element_bytes(type), type == format::KvType::bf16, from);
}

// Keys [begin, end) of the span in f32, at their places of k and v: [256][head_dim]. Other slots are not read.
void load_span(const AttentionTile& tile, std::uint32_t span, std::size_t begin, std::size_t end, float* k, float* v) {
  const AttentionQuery& query = *tile.query;
  const format::BlockLayout& layout = query.kv->layout;
  const format::KvFormat format = layout.format();
  const std::size_t head_dim = layout.head_dim();
  for (std::size_t key = begin; key < end; ++key) {
    const std::size_t position = std::size_t{span} * kSpanTokens + key;
    const auto offset = static_cast<std::uint32_t>(position % layout.block_tokens());
    const std::byte* block = query.kv->blocks.address(query.blocks[position / layout.block_tokens() - query.first_block]);
    const std::byte* k_from = block + layout.k_offset(query.layer, tile.kv_head, offset);
    const std::byte* v_from = block + layout.v_offset(query.layer, tile.kv_head, offset);
    for (std::size_t c = 0; c < head_dim; ++c) {
      k[key * head_dim + c] = load(format.k, k_from + c * format::kKeysPerTile * format::element_bytes(format.k));
      v[key * head_dim + c] = load(format.v, v_from + c * format::element_bytes(format.v));
    }
  }
}

// One line over the keys [begin, end) it sees (at least one). q is scaled already; out is [head_dim].
KVASIR_FMA_CLONES
void attend(const float* q, const float* k, const float* v, std::size_t begin, std::size_t end, std::size_t head_dim,
            float& max_to, float& sum_to, float* out) {
  std::array<float, kSpanTokens> scores{};
  LaneMax max;
  for (std::size_t key = begin; key < end; ++key) {
    float score = 0;
    for (std::size_t c = 0; c < head_dim; ++c) score = std::fma(q[c], k[key * head_dim + c], score);
    scores[key] = score;
    max.add(key, score);
  }
  max_to = max.total();

  LaneSum sum;
  std::fill(out, out + head_dim, 0.0f);
  for (std::size_t key = begin; key < end; ++key) {
    const float p = exp_f32(scores[key] - max_to);
    sum.add(key, p);  // the other slots would add +0
    for (std::size_t c = 0; c < head_dim; ++c) out[c] = std::fma(p, v[key * head_dim + c], out[c]);
  }
  sum_to = sum.total();
}

// What weighted values are multiplied by at the end.
KVASIR_FMA_CLONES
float inverse_of(float max, float sum, const float* sink) {
  if (sink == nullptr) return 1.0f / sum;
  const float m = max_of(max, *sink);
  const float a = exp_f32(max - m), b = exp_f32(*sink - m);
  return a / std::fma(sum, a, b);
}

}  // namespace

void attention_span(const AttentionTile& tile, std::uint32_t span, SpanState state, float* scratch) {
  const AttentionQuery& query = *tile.query;
  const std::size_t head_dim = query.kv->layout.head_dim();
  float* q = scratch;  // of one line
  float* k = q + head_dim;
  float* v = k + kSpanTokens * head_dim;
  // The first row reaches furthest back, the last one furthest on.
  load_span(tile, span, Visible(query, tile.row_begin, span).begin, Visible(query, tile.row_end - 1, span).end, k, v);

  for (std::size_t index = 0; index < tile.lines(); ++index) {
    const Line line(tile, index);
    const Visible keys(query, line.row, span);
    float* out = state.out + index * head_dim;
    if (keys.begin == keys.end) {
      state.max[index] = kNoKey;
      state.sum[index] = 0;
      std::fill(out, out + head_dim, 0.0f);
      continue;
    }
    for (std::size_t c = 0; c < head_dim; ++c)
      q[c] = query.q[line.row * query.q_stride + line.head * head_dim + c] * query.scale;
    attend(q, k, v, keys.begin, keys.end, head_dim, state.max[index], state.sum[index], out);
  }
}

void attention_merge(SpanState into, SpanState next, std::size_t lines, std::size_t head_dim) {
  for (std::size_t line = 0; line < lines; ++line) {
    if (next.max[line] == kNoKey) continue;
    float* to = into.out + line * head_dim;
    const float* from = next.out + line * head_dim;
    if (into.max[line] == kNoKey) {
      into.max[line] = next.max[line];
      into.sum[line] = next.sum[line];
      std::copy(from, from + head_dim, to);
      continue;
    }
    const float m = max_of(into.max[line], next.max[line]);
    const float a = exp_f32(into.max[line] - m);
    const float b = exp_f32(next.max[line] - m);
    into.sum[line] = std::fma(into.sum[line], a, next.sum[line] * b);
    for (std::size_t c = 0; c < head_dim; ++c) to[c] = std::fma(to[c], a, from[c] * b);
    into.max[line] = m;
  }
}

void attention_finish(const AttentionTile& tile, SpanState state) {
  const AttentionQuery& query = *tile.query;
  const std::size_t head_dim = query.kv->layout.head_dim();
  for (std::size_t index = 0; index < tile.lines(); ++index) {
    const Line line(tile, index);
    const float inverse = inverse_of(state.max[index], state.sum[index], query.sinks == nullptr ? nullptr : &query.sinks[line.head]);
    float* to = query.out + line.row * query.out_stride + line.head * head_dim;
    for (std::size_t c = 0; c < head_dim; ++c) to[c] = state.out[index * head_dim + c] * inverse;
  }
}

}  // namespace kvasir::kernels::exact
