#include "model/attention_pass.hpp"

#include <cmath>

#include "base/check.hpp"
#include "base/fixed_math.hpp"
#include "model/parallel.hpp"
#include "model/projector.hpp"

namespace kvasir::model {

AttentionPass::AttentionPass(const Model& model, const AttentionGroups& groups, const ForwardLimits& limits, Workspace& ws,
                             platform::ThreadPool& pool)
    : g_(model.geometry()), w_(model.weights()), k_(kernels::kernel_set(model.options().isa)), ws_(ws), pool_(pool),
      places_(groups.places), most_kv_heads_(most_kv_heads(g_)), max_rows_(limits.rows), epsilon_(static_cast<float>(g_.norm_epsilon)),
      scale_(static_cast<float>(g_.attention_scale != 0 ? g_.attention_scale : 1.0 / std::sqrt(static_cast<double>(g_.head_dim)))) {
  for (const AttentionShape& shape : groups.shapes)
    plans_.emplace_back(shape, limits.rows, limits.sequences, limits.context, pool.threads());
  queries_.resize(limits.sequences);
}

void AttentionPass::begin(const StepInput& step, std::span<const StepRow> rows, std::span<const PlannedSequence> planned) {
  KV_CHECK(step.tables.size() == plans_.size() && step.kv.size() == plans_.size(), "a page table and a view for each cache group");
  step_ = &step;
  rows_ = rows;
  planned_ = planned;
  for (AttentionPlan& plan : plans_) plan.plan(planned);
}

void AttentionPass::set_angles(std::size_t row) {
  for (std::size_t rope = 0; rope < w_.ropes.size(); ++rope) {
    const RopeTable& table = w_.ropes[rope];
    const std::size_t half = table.frequencies.size(), at = (rope * max_rows_ + row) * half;
    for (std::size_t i = 0; i < half; ++i) {
      const SinCos angle = sincos_f64(rows_[row].position * table.frequencies[i]);
      ws_.cosines[at + i] = static_cast<float>(angle.cos * table.scale);
      ws_.sines[at + i] = static_cast<float>(angle.sin * table.scale);
    }
  }
}

AttentionPass::LayerView AttentionPass::view(std::uint32_t layer) const {
  return {w_.layers[layer], places_[layer], rope_index(g_, layer)};
}

void AttentionPass::run(std::uint32_t layer) {
  const LayerView l = view(layer);
  store_rows(l);
  set_queries(l);
  attend(plans_[l.place.group]);
}

void AttentionPass::norm_heads(float* heads, std::uint32_t count, const std::vector<float>& weight) const {
  if (weight.empty()) return;
  const std::size_t all = std::size_t{count} * g_.head_dim;   // a weight is as long as one head, or as all of them together
  for (std::size_t at = 0; at < all; at += weight.size()) k_.rms_norm(heads + at, weight.data(), weight.size(), epsilon_, heads + at);
}

void AttentionPass::turn_heads(float* heads, std::uint32_t count, std::optional<std::uint32_t> rope, std::size_t row) const {
  if (!rope) return;
  const std::size_t half = g_.rope.dim / 2, at = (*rope * max_rows_ + row) * half;
  const auto turn = g_.rope.pairing == artifact::RopePairing::interleaved ? kernels::rope_interleaved : kernels::rope_halves;
  for (std::uint32_t h = 0; h < count; ++h) turn(heads + std::size_t{h} * g_.head_dim, g_.rope.dim, &ws_.cosines[at], &ws_.sines[at]);
}

// Biases, head norms and rotation of each row, then its keys and values into their blocks.
void AttentionPass::store_rows(const LayerView& layer) {
  parallel_chunks(pool_, rows_.size(), kRowChunk, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t row = begin; row < end; ++row) store_row(layer, row);
  });
}

void AttentionPass::store_row(const LayerView& layer, std::size_t row) {
  const format::PagedKvView& kv = step_->kv[layer.place.group];
  const format::PageTableView& table = step_->tables[layer.place.group];
  const std::uint32_t kv_heads = kv.layout.kv_heads(), block_tokens = kv.layout.block_tokens();
  float* const queries = &ws_.qkv[row * qkv_stride()];
  float* const keys = queries + q_width();
  const float* const values = keys + std::size_t{kv_heads} * g_.head_dim;
  add_bias(layer.weights.qkv, queries);
  norm_heads(queries, g_.heads, layer.weights.q_norm);
  norm_heads(keys, kv_heads, layer.weights.k_norm);
  turn_heads(queries, g_.heads, layer.rope, row);
  turn_heads(keys, kv_heads, layer.rope, row);
  const auto [sequence, position] = rows_[row];
  const BlockId* const blocks = table.kv_indices + table.kv_indptr[sequence];
  const std::uint32_t listed = position / block_tokens - static_cast<std::uint32_t>(table.first_block[sequence]);
  std::byte* const block = kv.blocks.address(blocks[listed]);
  const std::uint32_t slot = layer.place.slot, offset = position % block_tokens;
  for (std::uint32_t h = 0; h < kv_heads; ++h)
    k_.store_kv(keys + std::size_t{h} * g_.head_dim, values + std::size_t{h} * g_.head_dim, g_.head_dim, kv.layout.format(),
                block + kv.layout.k_offset(slot, h, offset), block + kv.layout.v_offset(slot, h, offset));
}

void AttentionPass::set_queries(const LayerView& layer) {
  const std::uint32_t group = layer.place.group;
  const format::PageTableView& table = step_->tables[group];
  std::size_t row = 0;
  for (std::uint32_t s = 0; s < planned_.size(); ++s) {
    queries_[s] = {.kv = &step_->kv[group], .layer = layer.place.slot, .blocks = table.kv_indices + table.kv_indptr[s],
                   .first_block = static_cast<std::uint32_t>(table.first_block[s]), .heads = g_.heads,
                   .q = &ws_.qkv[row * qkv_stride()], .q_stride = qkv_stride(), .out = &ws_.heads[row * q_width()],
                   .out_stride = q_width(), .first_position = planned_[s].first_position, .reach = plans_[group].shape().reach,
                   .scale = scale_, .sinks = layer.weights.sinks.empty() ? nullptr : layer.weights.sinks.data()};
    row += planned_[s].rows;
  }
}

kernels::AttentionTile AttentionPass::tile_of(const AttentionItem& item) const {
  return {&queries_[item.sequence], item.kv_head, item.row_begin, item.row_end};
}

void AttentionPass::attend_whole(const AttentionItem& item, ThreadScratch& scratch) {
  const kernels::AttentionTile tile = tile_of(item);
  const kernels::SpanState running = scratch.running.at(0), span = scratch.span.at(0);
  k_.attention_span(tile, item.span_begin, running, scratch.attention.data());
  for (std::uint32_t s = item.span_begin + 1; s < item.span_end; ++s) {
    k_.attention_span(tile, s, span, scratch.attention.data());
    k_.attention_merge(running, span, tile.lines(), g_.head_dim);
  }
  k_.attention_finish(tile, running);
}

void AttentionPass::merge_split(const AttentionItem& item) {
  const kernels::AttentionTile tile = tile_of(item);
  const kernels::SpanState into = ws_.split.at(item.first_line);
  for (std::uint32_t s = 1; s < item.span_end - item.span_begin; ++s)
    k_.attention_merge(into, ws_.split.at(item.first_line + s * tile.lines()), tile.lines(), g_.head_dim);
  k_.attention_finish(tile, into);
}

void AttentionPass::attend(const AttentionPlan& plan) {
  const std::span<const AttentionItem> items = plan.items();
  parallel_chunks(pool_, items.size(), 1, [&](std::size_t begin, std::size_t, std::size_t thread) {
    const AttentionItem& item = items[begin];
    ThreadScratch& scratch = ws_.threads[thread];
    if (plan.split()) k_.attention_span(tile_of(item), item.span_begin, ws_.split.at(item.first_line), scratch.attention.data());
    else attend_whole(item, scratch);
  });
  if (plan.split())
    for (const AttentionItem& tile : plan.tiles()) merge_split(tile);
}

}  // namespace kvasir::model
