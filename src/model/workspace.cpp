#include "model/workspace.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "model/attention_groups.hpp"
#include "model/rope_table.hpp"

namespace kvasir::model {

void Workspace::carve(Carver& carver, const artifact::ModelGeometry& g, const ForwardLimits& limits, const AttentionSizes& sizes,
                      std::size_t thread_count) {
  const std::size_t rows = limits.rows, logits_rows = limits.logits_rows;
  const std::size_t q = std::size_t{g.heads} * g.head_dim, kv = std::size_t{most_kv_heads(g)} * g.head_dim;
  const std::size_t widest = std::max({std::size_t{g.width}, q, std::size_t{g.feed_forward}});
  constexpr std::size_t kPanelRows = 64;   // an upper bound of every class's panel: rows round up to it
  const std::size_t panel_q_elements = kernels::ActivationPanels::q_elements(std::max(rows, logits_rows), widest, kPanelRows);
  const std::size_t panel_scales = ceil_div(panel_q_elements, kernels::kBlockInputs);
  residual = carver.take<float>(rows * g.width);
  normed = carver.take<float>(rows * g.width);
  qkv = carver.take<float>(rows * (q + 2 * kv));
  heads = carver.take<float>(rows * q);
  gate_up = carver.take<float>(rows * 2 * g.feed_forward);
  panel_q = carver.take<std::int8_t>(panel_q_elements);
  panel_d = carver.take<float>(panel_scales);
  panel_ds = carver.take<float>(panel_scales);
  panel_sum = carver.take<std::int32_t>(panel_scales);
  panel_sum_low = carver.take<std::int32_t>(panel_scales);
  const std::size_t angles = ropes_of(g).size() * rows * (g.rope.dim / 2);
  cosines = carver.take<float>(angles);
  sines = carver.take<float>(angles);
  last_rows = carver.take<float>(logits_rows * g.width);
  hidden = carver.take<float>(logits_rows * g.width);
  logits = carver.take<float>(logits_rows * g.vocabulary);
  split = SpanBuffers(carver, sizes.split_lines, g.head_dim);
  threads.resize(thread_count);
  for (ThreadScratch& t : threads) {
    t.attention = carver.take<float>(kernels::attention_scratch_floats(sizes.tile_lines, g.head_dim));
    t.unpack = carver.take<float>(widest * kernels::kTileOutputs);
    t.running = SpanBuffers(carver, sizes.tile_lines, g.head_dim);
    t.span = SpanBuffers(carver, sizes.tile_lines, g.head_dim);
  }
}

std::uint64_t Workspace::bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, const AttentionSizes& sizes,
                               std::size_t threads) {
  Carver counter(nullptr);
  Workspace().carve(counter, geometry, limits, sizes, threads);
  return counter.used();
}

Workspace::Workspace(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, const AttentionSizes& sizes, std::size_t thread_count)
    : memory_(bytes(geometry, limits, sizes, thread_count)) {
  Carver carver(memory_.data());
  carve(carver, geometry, limits, sizes, thread_count);
}

}  // namespace kvasir::model
