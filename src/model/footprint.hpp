// What a model's weights cost once packed, from the file's headers alone. The loader allocates exactly this; the planner
// asks the same function.
// Thread rule: pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "artifact/gguf.hpp"
#include "artifact/geometry.hpp"

namespace kvasir::model {

// Bytes. A head that is tied to the embedding costs nothing more: it is a view.
struct WeightFootprint {
  std::uint64_t embedding = 0;      // token table, shared with the head where tied
  std::uint64_t head = 0;           // 0 where tied
  std::uint64_t attention = 0;      // projections and their biases
  std::uint64_t feed_forward = 0;
  std::uint64_t norms = 0;          // norms and rope tables, in f32 and f64
  std::uint64_t matrices = 0;       // of all that: the packed matrices, which lie in one piece of memory
  std::uint64_t total() const { return embedding + head + attention + feed_forward + norms; }
};

// Which part of WeightFootprint a tensor counts in. experts, other: in none, for no forward pass here reads them.
enum class TensorClass : std::uint8_t { embedding, head, attention, feed_forward, norms, experts, other };
TensorClass tensor_class(const artifact::GgufTensor& tensor);

// Whether an architecture, as it is named in files, has a forward pass here.
bool has_forward_pass(std::string_view architecture);

// Counts the tensors that a forward pass reads; others in the file cost nothing.
WeightFootprint weight_footprint(const artifact::GgufFile& file, const artifact::ModelGeometry& geometry);

}  // namespace kvasir::model
