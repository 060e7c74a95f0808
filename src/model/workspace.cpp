#include "model/workspace.hpp"

#include <algorithm>

namespace kvasir::model {

WorkspaceSizes::WorkspaceSizes(const artifact::ModelGeometry& g, const ForwardLimits& limits, const AttentionPlan& plan,
                               std::size_t thread_count) {
  const std::size_t rows = limits.rows;
  const std::size_t q = std::size_t{g.heads} * g.head_dim;
  const std::size_t kv = std::size_t{g.kv_heads.front()} * g.head_dim;
  const std::size_t widest_input = std::max({std::size_t{g.width}, q, std::size_t{g.feed_forward}});
  const std::size_t panel_rows = 64;   // an upper bound of every class's panel: rows round up to it
  const std::size_t most_rows = std::max<std::size_t>(rows, limits.logits_rows);
  width_rows = rows * g.width;
  qkv_rows = rows * (q + 2 * kv);
  head_rows = rows * q;
  gate_rows = rows * 2 * g.feed_forward;
  panel_q = kernels::ActivationPanels::q_elements(most_rows, widest_input, panel_rows);
  panel_scales = panel_q / kernels::kBlockInputs + 1;
  angles = rows * (g.rope.dim / 2);
  logits_width = std::size_t{limits.logits_rows} * g.width;
  logits = std::size_t{limits.logits_rows} * g.vocabulary;
  attention_scratch = kernels::attention_scratch_floats(plan.max_tile_lines(), g.head_dim);
  state_lines = plan.max_tile_lines();
  split_lines = plan.max_split_lines();
  unpack = widest_input * kernels::kTileOutputs;
  head_dim = g.head_dim;
  threads = thread_count;
}

std::uint64_t WorkspaceSizes::bytes() const {
  const std::uint64_t state = state_lines * (2 + head_dim);
  const std::uint64_t floats = 2 * width_rows + qkv_rows + head_rows + gate_rows + 3 * panel_scales + 2 * angles +
                               2 * logits_width + logits + split_lines * (2 + head_dim) +
                               threads * (attention_scratch + unpack + 2 * state);
  return floats * sizeof(float) + panel_q;
}

Workspace::Workspace(const WorkspaceSizes& s)
    : residual(s.width_rows), normed(s.width_rows), qkv(s.qkv_rows), heads(s.head_rows), gate_up(s.gate_rows),
      panel_q(s.panel_q), panel_d(s.panel_scales), panel_ds(s.panel_scales), panel_sum(s.panel_scales), cosines(s.angles), sines(s.angles),
      last_rows(s.logits_width), hidden(s.logits_width), logits(s.logits), split(s.split_lines, s.head_dim) {
  threads.resize(s.threads);
  for (ThreadScratch& t : threads) {
    t.attention = platform::AlignedArray<float>(s.attention_scratch);
    t.unpack = platform::AlignedArray<float>(s.unpack);
    t.running = SpanBuffers(s.state_lines, s.head_dim);
    t.span = SpanBuffers(s.state_lines, s.head_dim);
  }
}

}  // namespace kvasir::model
