#include "model/footprint.hpp"

#include "kernels/packed_matrix.hpp"
#include "model/encoding.hpp"
#include "model/rope_table.hpp"

namespace kvasir::model {
namespace {

using artifact::GgufTensor;

// A vector is kept in f32, a matrix [k, n] in packed tiles.
std::uint64_t bytes_of(const GgufTensor& tensor) {
  if (tensor.dims.size() == 1) return tensor.dims[0] * sizeof(float);
  return kernels::packed_bytes(kernels::form_of(encoding_of(tensor.type)), tensor.dims[1], tensor.dims[0]);
}

bool is_matrix(const GgufTensor& tensor) { return tensor.dims.size() == 2; }

// The name without its layer: "blk.7.attn_q.weight" -> "attn_q.weight".
std::string_view within_layer(std::string_view name) { return name.substr(name.find('.', 4) + 1); }

}  // namespace

TensorClass tensor_class(const GgufTensor& tensor) {
  const bool layer = tensor.name.starts_with("blk.");
  const std::string_view name = layer ? within_layer(tensor.name) : tensor.name;
  if (tensor.dims.size() > 2) return name.find("_exps") != std::string_view::npos ? TensorClass::experts : TensorClass::other;
  if (name.ends_with("_norm.weight")) return TensorClass::norms;
  if (name == "token_embd.weight") return TensorClass::embedding;
  if (name == "output.weight") return TensorClass::head;
  if (layer && name.starts_with("attn_")) return TensorClass::attention;
  if (layer && name.starts_with("ffn_")) return TensorClass::feed_forward;
  return TensorClass::other;
}

WeightFootprint weight_footprint(const artifact::GgufFile& file, const artifact::ModelGeometry& geometry) {
  WeightFootprint sum;
  sum.norms = ropes_of(geometry).size() * (geometry.rope.dim / 2) * sizeof(double);
  for (const GgufTensor& tensor : file.tensors()) {
    switch (tensor_class(tensor)) {
      case TensorClass::embedding: sum.embedding += bytes_of(tensor); break;
      case TensorClass::head: sum.head += bytes_of(tensor); break;
      case TensorClass::attention: sum.attention += bytes_of(tensor); break;
      case TensorClass::feed_forward: sum.feed_forward += bytes_of(tensor); break;
      case TensorClass::norms: sum.norms += bytes_of(tensor); break;
      case TensorClass::experts:
      case TensorClass::other: continue;
    }
    if (is_matrix(tensor)) sum.matrices += bytes_of(tensor);
  }
  return sum;
}

}  // namespace kvasir::model
