// Every buffer a step writes, carved from one allocation sized from the limits. Plain data; owned by one Forward.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "artifact/geometry.hpp"
#include "kernels/kernels.hpp"
#include "model/attention_plan.hpp"
#include "model/forward.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::model {

// Cuts 64-byte aligned arrays from memory; without memory it only counts, so that what is planned is what is taken.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  template <class T>
  std::span<T> take(std::size_t count) {
    const std::size_t at = used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return memory_ == nullptr ? std::span<T>() : std::span<T>(reinterpret_cast<T*>(memory_ + at), count);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

// Span results for some lines, and views into them.
struct SpanBuffers {
  std::span<float> max, sum, out;
  std::size_t head_dim = 0;
  SpanBuffers() = default;
  SpanBuffers(Carver& carver, std::size_t lines, std::size_t dim)
      : max(carver.take<float>(lines)), sum(carver.take<float>(lines)), out(carver.take<float>(lines * dim)), head_dim(dim) {}
  kernels::SpanState at(std::size_t line) const { return {max.data() + line, sum.data() + line, out.data() + line * head_dim}; }
};

// What one thread writes for itself.
struct ThreadScratch {
  std::span<float> attention, unpack;
  SpanBuffers running, span;
};

struct Workspace {
  Workspace(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, const AttentionSizes& sizes, std::size_t threads);

  // What the constructor allocates, bytes.
  static std::uint64_t bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, const AttentionSizes& sizes,
                             std::size_t threads);

  std::span<float> residual, normed;        // [rows][width]
  std::span<float> qkv;                     // [rows][q | k | v]
  std::span<float> heads;                   // [rows][heads * head_dim]
  std::span<float> gate_up;                 // [rows][gate | up]
  std::span<std::int8_t> panel_q;           // activations of one projection, quantized
  std::span<float> panel_d, panel_ds;
  std::span<std::int32_t> panel_sum, panel_sum_low;
  std::span<float> cosines, sines;          // [ropes][rows][rope dim / 2]
  std::span<float> last_rows, hidden;       // [logits rows][width], before and after the final norm
  std::span<float> logits;                  // [logits rows][vocabulary]
  SpanBuffers split;
  std::vector<ThreadScratch> threads;

 private:
  void carve(Carver& carver, const artifact::ModelGeometry& g, const ForwardLimits& limits, const AttentionSizes& sizes, std::size_t thread_count);
  Workspace() = default;
  platform::AlignedBuffer memory_;
};

}  // namespace kvasir::model
