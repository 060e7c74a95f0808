// The packed weights of a decoder, layer by layer. Plain data; immutable once loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/packed_matrix.hpp"
#include "model/rope_table.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::model {

// A packed matrix and, for some architectures, a bias of n floats (empty: none).
struct Linear {
  kernels::PackedMatrix matrix;
  std::vector<float> bias;
};

// Linears that read the same input; their outputs stand side by side in one row: part p at columns
// [offset of p, offset of p + its n). Threads share the tiles of all parts.
struct Projection {
  std::vector<Linear> parts;

  std::size_t outputs() const {
    std::size_t n = 0;
    for (const Linear& part : parts) n += part.matrix.n;
    return n;
  }
  std::size_t tiles() const {
    std::size_t count = 0;
    for (const Linear& part : parts) count += part.matrix.count();
    return count;
  }
  bool any_bias() const {
    for (const Linear& part : parts)
      if (!part.bias.empty()) return true;
    return false;
  }
  bool any_integer() const {
    for (const Linear& part : parts)
      if (kernels::is_integer(part.matrix.form)) return true;
    return false;
  }
};

// Vectors are empty where the architecture has none.
struct Layer {
  std::vector<float> attention_norm;            // [width]
  Projection qkv;                               // width -> heads*head_dim | kv_heads*head_dim | kv_heads*head_dim
  std::vector<float> q_norm, k_norm;            // [head_dim], or over all heads together
  std::vector<float> sinks;                     // [heads]
  Projection attention_out;                     // heads*head_dim -> width
  std::vector<float> post_attention_norm;       // [width]
  std::vector<float> feed_forward_norm;         // [width]
  Projection gate_up;                           // width -> feed_forward | feed_forward
  Projection down;                              // feed_forward -> width
  std::vector<float> post_feed_forward_norm;    // [width]
};

struct Weights {
  platform::AlignedBuffer memory;         // of all matrices: one mapping, so that huge pages back even the small ones
  Linear embedding;                       // [vocabulary][width]; also the head where tied
  std::vector<Layer> layers;
  std::vector<float> output_norm;         // [width]
  Projection head;                        // one part; a view of the embedding where tied
  std::vector<RopeTable> ropes;           // as ropes_of(geometry)
};

}  // namespace kvasir::model
