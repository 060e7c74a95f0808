#include "model/forward.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fixed_math.hpp"
#include "kernels/kernels.hpp"
#include "model/architecture.hpp"
#include "model/attention_plan.hpp"
#include "model/parallel.hpp"
#include "model/weights.hpp"
#include "model/workspace.hpp"

namespace kvasir::model {
namespace {

constexpr std::size_t kChunksPerThread = 6;   // of a projection's tiles: small enough to even out a slowed core
constexpr std::size_t kStreamingRows = 8;     // up to so many rows weights come from memory: one long stream a thread
constexpr std::size_t kRowChunk = 4;          // rows of the row-wise parts

// One token of the step: where it stands in its sequence.
struct Row {
  std::uint32_t sequence = 0;
  std::uint32_t position = 0;
};

// Activations in the workspace: row r at data + r * stride.
struct Rows {
  const float* data = nullptr;
  std::size_t width = 0;
  std::size_t stride = 0;
};

AttentionShape shape_of(const artifact::ModelGeometry& g) { return {g.heads, g.kv_heads.front(), g.head_dim}; }

}  // namespace

// A step walks: embed, then for each layer {norm, qkv, rope and store, attend, out, norm, gate and up, silu, down},
// then norm and head for the rows that want logits. Each line is one parallel region.
struct Forward::State {
  State(std::shared_ptr<const Model> m, const ForwardLimits& l, platform::ThreadPool& p)
      : model(std::move(m)), g(model->geometry()), w(model->weights()), k(kernels::kernel_set(model->options().isa)), limits(l),
        pool(p), plan(shape_of(g), l.rows, l.sequences, l.context, p.threads()),
        ws(g, l, plan.sizes(), p.threads()), epsilon(static_cast<float>(g.norm_epsilon)),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(g.head_dim)))) {
    rows.reserve(l.rows);
    wanted.reserve(l.rows);
    planned.reserve(l.sequences);
    queries.resize(l.sequences);
  }

  std::shared_ptr<const Model> model;
  const artifact::ModelGeometry& g;
  const Weights& w;
  const kernels::KernelSet& k;
  ForwardLimits limits;
  platform::ThreadPool& pool;
  AttentionPlan plan;
  Workspace ws;
  float epsilon, scale;
  std::vector<Row> rows;
  std::vector<PlannedSequence> planned;
  std::vector<kernels::AttentionQuery> queries;
  std::vector<std::uint32_t> wanted;   // rows of the step whose logits are wanted, ascending
  std::size_t held_first = 0, held = 0;   // those of `wanted` whose logits are held

  std::size_t q_width() const { return std::size_t{g.heads} * g.head_dim; }
  std::size_t kv_width() const { return std::size_t{g.kv_heads.front()} * g.head_dim; }
  std::size_t qkv_width() const { return q_width() + 2 * kv_width(); }

  void begin(const StepInput& step) {
    rows.clear();
    planned.clear();
    wanted.clear();
    KV_CHECK(step.sequences.size() <= limits.sequences, "a step has no more sequences than the workspace");
    KV_CHECK(step.tables.size() == 1 && step.kv.size() == 1, "one cache group");
    for (std::uint32_t s = 0; s < step.sequences.size(); ++s) {
      const StepSequence& seq = step.sequences[s];
      const auto count = static_cast<std::uint32_t>(seq.tokens.size());
      KV_CHECK(rows.size() + count <= limits.rows, "a step has no more rows than the workspace");
      KV_CHECK(seq.first_position + count <= limits.context, "positions stay within the context");
      KV_CHECK(seq.logits_rows <= count, "logits are wanted of rows of the step");
      for (std::uint32_t i = 0; i < count; ++i) {
        if (i + seq.logits_rows >= count) wanted.push_back(static_cast<std::uint32_t>(rows.size()));
        rows.push_back({s, seq.first_position + i});
      }
      planned.push_back({seq.first_position, count});
    }
    plan.plan(planned);
  }

  void embed(const StepInput& step) {
    parallel_chunks(pool, rows.size(), kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      const std::size_t half = g.rope.dim / 2;
      for (std::size_t r = begin; r < end; ++r) {
        const StepSequence& seq = step.sequences[rows[r].sequence];
        const TokenId token = seq.tokens[rows[r].position - seq.first_position];
        KV_CHECK(token >= 0 && static_cast<std::uint32_t>(token) < g.vocabulary, "token ids are within the vocabulary");
        k.unpack_row(w.embedding.matrix, static_cast<std::size_t>(token), &ws.residual[r * g.width]);
        for (std::size_t i = 0; i < half; ++i) {
          const SinCos angle = sincos_f64(rows[r].position * w.rope_frequencies[i]);
          ws.cosines[r * half + i] = static_cast<float>(angle.cos);
          ws.sines[r * half + i] = static_cast<float>(angle.sin);
        }
      }
    });
  }

  kernels::ActivationPanels panels(std::size_t count, std::size_t inputs) const {
    return {ws.panel_q.data(), ws.panel_d.data(), ws.panel_ds.data(), ws.panel_sum.data(), ws.panel_sum_low.data(), inputs,
            std::min(k.panel_rows, count)};
  }

  bool wants_panels(const Projection& p) const { return model->options().compute == Compute::int8 && p.any_integer(); }

  // out = projection of `count` rows of x; x must have been quantized into panels() where wants_panels().
  void project(const Projection& p, Rows x, std::size_t count, kernels::MatmulOutput out) {
    const kernels::ActivationPanels a = panels(count, x.width);
    const std::size_t tiles = p.tiles();
    const std::size_t chunks = pool.threads() * (count <= kStreamingRows ? 1 : kChunksPerThread);
    const std::size_t chunk = (tiles + chunks - 1) / chunks;
    parallel_chunks(pool, tiles, chunk, [&](std::size_t begin, std::size_t end, std::size_t thread) {
      std::size_t first_tile = 0, column = 0;
      for (const Linear& part : p.parts) {
        const std::size_t part_tiles = part.matrix.count();
        const std::size_t from = std::max(begin, first_tile), to = std::min(end, first_tile + part_tiles);
        if (from < to) {
          const kernels::MatmulOutput to_rows{out.data + column, out.stride, out.add};
          if (model->options().compute == Compute::int8 && kernels::is_integer(part.matrix.form))
            k.matmul_int8(part.matrix, a, count, from - first_tile, to - first_tile, to_rows);
          else
            k.matmul_f32(part.matrix, x.data, x.stride, count, from - first_tile, to - first_tile, ws.threads[thread].unpack.data(), to_rows);
        }
        first_tile += part_tiles;
        column += part.matrix.n;
      }
    });
  }

  // normed = rms_norm(x) row by row, and its panels where the projection that reads it wants them.
  void norm(const float* x, const std::vector<float>& weight, std::size_t count, const Projection& next, float* y) {
    const kernels::ActivationPanels a = panels(count, g.width);
    const bool quantize = wants_panels(next);
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) k.rms_norm(x + r * g.width, weight.data(), g.width, epsilon, y + r * g.width);
      if (quantize) k.quantize(y, g.width, begin, end, a);
    });
  }

  void add_bias(const Projection& p, float* row) const {
    for (const Linear& part : p.parts) {
      for (std::size_t i = 0; i < part.bias.size(); ++i) row[i] += part.bias[i];
      row += part.matrix.n;
    }
  }

  void rotate(float* head, const std::vector<float>& head_norm, const float* cosines, const float* sines) const {
    if (!head_norm.empty()) k.rms_norm(head, head_norm.data(), g.head_dim, epsilon, head);
    if (g.rope.pairing == artifact::RopePairing::interleaved) kernels::rope_interleaved(head, g.rope.dim, cosines, sines);
    else kernels::rope_halves(head, g.rope.dim, cosines, sines);
  }

  // Biases, head norms and rotation of each row, then its keys and values into their blocks.
  void rope_and_store(const StepInput& step, std::uint32_t index) {
    const Layer& layer = w.layers[index];
    const format::PagedKvView& kv = step.kv.front();
    const format::PageTableView& table = step.tables.front();
    parallel_chunks(pool, rows.size(), kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) {
        float* row = &ws.qkv[r * qkv_width()];
        const float* cosines = &ws.cosines[r * (g.rope.dim / 2)];
        const float* sines = &ws.sines[r * (g.rope.dim / 2)];
        add_bias(layer.qkv, row);
        for (std::size_t h = 0; h < g.heads; ++h) rotate(row + h * g.head_dim, layer.q_norm, cosines, sines);
        float* keys = row + q_width();
        const float* values = keys + kv_width();
        const std::uint32_t position = rows[r].position;
        const BlockId* blocks = table.kv_indices + table.kv_indptr[rows[r].sequence];
        std::byte* block = kv.blocks.address(blocks[position / kv.layout.block_tokens()]);
        const std::uint32_t offset = position % kv.layout.block_tokens();
        for (std::uint32_t h = 0; h < kv.layout.kv_heads(); ++h) {
          rotate(keys + h * g.head_dim, layer.k_norm, cosines, sines);
          k.store_kv(keys + h * g.head_dim, values + h * g.head_dim, g.head_dim, kv.layout.format(),
                     block + kv.layout.k_offset(index, h, offset), block + kv.layout.v_offset(index, h, offset));
        }
      }
    });
  }

  void set_queries(const StepInput& step, std::uint32_t layer) {
    std::size_t row = 0;
    for (std::uint32_t s = 0; s < step.sequences.size(); ++s) {
      queries[s] = {.kv = &step.kv.front(), .layer = layer,
                    .blocks = step.tables.front().kv_indices + step.tables.front().kv_indptr[s], .heads = g.heads,
                    .q = &ws.qkv[row * qkv_width()], .q_stride = qkv_width(), .out = &ws.heads[row * q_width()],
                    .out_stride = q_width(), .first_position = planned[s].first_position, .scale = scale};
      row += planned[s].rows;
    }
  }

  kernels::AttentionTile tile_of(const AttentionItem& item) const {
    return {&queries[item.sequence], item.kv_head, item.row_begin, item.row_end};
  }

  void attend_whole(const AttentionItem& item, ThreadScratch& scratch) {
    const kernels::AttentionTile tile = tile_of(item);
    const kernels::SpanState running = scratch.running.at(0), span = scratch.span.at(0);
    k.attention_span(tile, item.span_begin, running, scratch.attention.data());
    for (std::uint32_t s = item.span_begin + 1; s < item.span_end; ++s) {
      k.attention_span(tile, s, span, scratch.attention.data());
      k.attention_merge(running, span, tile.lines(), g.head_dim);
    }
    k.attention_finish(tile, running);
  }

  void merge_split(const AttentionItem& item) {
    const kernels::AttentionTile tile = tile_of(item);
    const kernels::SpanState into = ws.split.at(item.first_line);
    for (std::uint32_t s = 1; s < item.span_end - item.span_begin; ++s)
      k.attention_merge(into, ws.split.at(item.first_line + s * tile.lines()), tile.lines(), g.head_dim);
    k.attention_finish(tile, into);
  }

  void attend(const StepInput& step, std::uint32_t layer) {
    set_queries(step, layer);
    const std::span<const AttentionItem> items = plan.items();
    parallel_chunks(pool, items.size(), 1, [&](std::size_t begin, std::size_t, std::size_t thread) {
      const AttentionItem& item = items[begin];
      if (plan.split()) k.attention_span(tile_of(item), item.span_begin, ws.split.at(item.first_line), ws.threads[thread].attention.data());
      else attend_whole(item, ws.threads[thread]);
    });
    if (plan.split())
      for (const AttentionItem& tile : plan.tiles()) merge_split(tile);
  }

  // x rows into panels where the projection that reads them wants them.
  void quantize(const float* x, std::size_t inputs, std::size_t stride, std::size_t count, const Projection& next) {
    if (!wants_panels(next)) return;
    const kernels::ActivationPanels a = panels(count, inputs);
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) { k.quantize(x, stride, begin, end, a); });
  }

  void feed_forward(const Layer& layer) {
    const std::size_t count = rows.size(), inner = g.feed_forward;
    norm(ws.residual.data(), layer.feed_forward_norm, count, layer.gate_up, ws.normed.data());
    project(layer.gate_up, {ws.normed.data(), g.width, g.width}, count, {ws.gate_up.data(), 2 * inner, false});
    const kernels::ActivationPanels a = panels(count, inner);
    const bool quantize_down = wants_panels(layer.down);
    parallel_chunks(pool, count, kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t r = begin; r < end; ++r) k.silu_mul(&ws.gate_up[r * 2 * inner], &ws.gate_up[r * 2 * inner + inner], inner);
      if (quantize_down) k.quantize(ws.gate_up.data(), 2 * inner, begin, end, a);
    });
    project(layer.down, {ws.gate_up.data(), inner, 2 * inner}, count, {ws.residual.data(), g.width, true});
  }

  // The residuals stay as the last layer left them, so the head may run again for other rows.
  void head(std::size_t first) {
    held_first = first;
    held = std::min<std::size_t>(limits.logits_rows, wanted.size() - first);
    if (held == 0) return;
    for (std::size_t i = 0; i < held; ++i) {
      std::copy_n(&ws.residual[wanted[first + i] * g.width], g.width, &ws.last_rows[i * g.width]);
    }
    norm(ws.last_rows.data(), w.output_norm, held, w.head, ws.hidden.data());
    project(w.head, {ws.hidden.data(), g.width, g.width}, held, {ws.logits.data(), g.vocabulary, false});
  }

  void run(const StepInput& step) {
    begin(step);
    embed(step);
    const std::size_t count = rows.size();
    for (std::uint32_t l = 0; l < g.layers; ++l) {
      const Layer& layer = w.layers[l];
      norm(ws.residual.data(), layer.attention_norm, count, layer.qkv, ws.normed.data());
      project(layer.qkv, {ws.normed.data(), g.width, g.width}, count, {ws.qkv.data(), qkv_width(), false});
      rope_and_store(step, l);
      attend(step, l);
      quantize(ws.heads.data(), q_width(), q_width(), count, layer.attention_out);
      project(layer.attention_out, {ws.heads.data(), q_width(), q_width()}, count, {ws.residual.data(), g.width, true});
      feed_forward(layer);
    }
    head(0);
  }
};

Forward::Forward(std::shared_ptr<const Model> model, const ForwardLimits& limits, platform::ThreadPool& pool)
    : state_(std::make_unique<State>(std::move(model), limits, pool)) {}
Forward::~Forward() = default;

void Forward::run(const StepInput& step) { state_->run(step); }

std::uint32_t Forward::logits_rows() const { return static_cast<std::uint32_t>(state_->wanted.size()); }

bool Forward::holds(std::uint32_t row) const {
  return row >= state_->held_first && row - state_->held_first < state_->held;
}

void Forward::hold_from(std::uint32_t first) {
  KV_CHECK(first < logits_rows(), "logits of rows that asked for them");
  state_->head(first);
}

std::span<const float> Forward::logits(std::uint32_t row) const {
  KV_CHECK(holds(row), "logits of a row that asked for them and is held");
  return {&state_->ws.logits[(row - state_->held_first) * state_->g.vocabulary], state_->g.vocabulary};
}

std::span<const float> Forward::hidden(std::uint32_t row) const {
  KV_CHECK(holds(row), "hidden state of a row that asked for logits and is held");
  return {&state_->ws.hidden[(row - state_->held_first) * state_->g.width], state_->g.width};
}

std::uint64_t Forward::workspace_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, std::size_t threads) {
  const AttentionSizes sizes = attention_sizes(shape_of(geometry), limits.rows, limits.sequences, limits.context, threads);
  return Workspace::bytes(geometry, limits, sizes, threads);
}

std::uint64_t Forward::logits_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits) {
  Carver counting(nullptr);
  counting.take<float>(std::size_t{limits.logits_rows} * geometry.vocabulary);
  return counting.used();
}

}  // namespace kvasir::model
