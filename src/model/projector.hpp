// The products of a step: rows of activations through packed weights, tiles shared out over the threads.
//
// Thread rule: one product at a time; it runs on the pool's threads.
// Invariants: an output's sum is one chain whatever the rows, the threads and the chunks (kernels/kernels.hpp).
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"
#include "model/workspace.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::model {

inline constexpr std::size_t kRowChunk = 4;   // rows of the row-wise parts that a thread takes at once

// Activations in the workspace: row r at data + r * stride.
struct Rows {
  const float* data = nullptr;
  std::size_t width = 0;
  std::size_t stride = 0;
};

class Projector {
 public:
  // REQUIRES: all outlive the object.
  Projector(const Model& model, Workspace& ws, platform::ThreadPool& pool);

  // Whether rows must be in panels() before project(): whether any weight of `p` takes them as integers.
  bool wants_panels(const Projection& p) const { return integer_ && p.any_integer(); }
  // Where `count` rows of `inputs` each are quantized.
  kernels::ActivationPanels panels(std::size_t count, std::size_t inputs) const;
  // Rows of x into panels() where the projection that reads them wants them.
  void quantize(Rows x, std::size_t count, const Projection& next);

  // out = p of `count` rows of x, without its biases. REQUIRES: x is in panels() where wants_panels(p).
  void project(const Projection& p, Rows x, std::size_t count, kernels::MatmulOutput out);

 private:
  void project_tiles(const Projection& p, Rows x, std::size_t count, kernels::MatmulOutput out, std::size_t begin, std::size_t end,
                     std::size_t thread);

  const kernels::KernelSet& k_;
  Workspace& ws_;
  platform::ThreadPool& pool_;
  bool integer_;
};

// row += the biases of p, side by side.
void add_bias(const Projection& p, float* row);

}  // namespace kvasir::model
