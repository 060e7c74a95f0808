// Every buffer a step writes, sized once from the limits. Plain data; owned by one Forward.
#pragma once

#include <cstdint>

#include "artifact/geometry.hpp"
#include "kernels/kernels.hpp"
#include "model/attention_plan.hpp"
#include "model/forward.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::model {

// Buffer sizes in elements; the constructor of Workspace and Forward::workspace_bytes both start from them.
struct WorkspaceSizes {
  std::size_t width_rows = 0;       // f32: residual, normed, attention rows
  std::size_t qkv_rows = 0;
  std::size_t head_rows = 0;        // attention output
  std::size_t gate_rows = 0;
  std::size_t panel_q = 0;          // int8
  std::size_t panel_scales = 0;     // f32 twice, int32 once
  std::size_t angles = 0;           // f32, cos and sin
  std::size_t logits_width = 0;     // f32: rows that want logits, normed
  std::size_t logits = 0;
  std::size_t attention_scratch = 0;   // f32 a thread
  std::size_t state_lines = 0;         // a thread
  std::size_t split_lines = 0;
  std::size_t unpack = 0;              // f32 a thread, --compute f32 and float weights
  std::size_t head_dim = 0;
  std::size_t threads = 0;

  WorkspaceSizes(const artifact::ModelGeometry& g, const ForwardLimits& limits, const AttentionPlan& plan, std::size_t threads);
  std::uint64_t bytes() const;
};

// Span results for `lines` lines, and views into them.
struct SpanBuffers {
  platform::AlignedArray<float> max, sum, out;
  std::size_t head_dim = 0;
  SpanBuffers() = default;
  SpanBuffers(std::size_t lines, std::size_t dim) : max(lines), sum(lines), out(lines * dim), head_dim(dim) {}
  kernels::SpanState at(std::size_t line) const { return {max.data() + line, sum.data() + line, out.data() + line * head_dim}; }
};

struct ThreadScratch {
  platform::AlignedArray<float> attention, unpack;
  SpanBuffers running, span;
};

struct Workspace {
  explicit Workspace(const WorkspaceSizes& sizes);

  platform::AlignedArray<float> residual, normed, qkv, heads, gate_up;
  platform::AlignedArray<std::int8_t> panel_q;
  platform::AlignedArray<float> panel_d, panel_ds;
  platform::AlignedArray<std::int32_t> panel_sum;
  platform::AlignedArray<float> cosines, sines;
  platform::AlignedArray<float> last_rows, hidden, logits;
  SpanBuffers split;
  std::vector<ThreadScratch> threads;
};

}  // namespace kvasir::model
