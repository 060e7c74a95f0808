#include "plan/weights.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "artifact/parameter_count.hpp"
#include "base/units.hpp"
#include "model/footprint.hpp"

namespace kvasir::plan {
namespace {

using artifact::GgufTensor;
using model::TensorClass;

// "30 x Q4_1, 1 x F16": the types of a class's matrices.
std::string types_of(const artifact::GgufFile& file, TensorClass wanted) {
  std::map<std::string_view, int> counts;
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.dims.size() >= 2 && model::tensor_class(tensor) == wanted) ++counts[artifact::to_string(tensor.type)];
  }
  std::string out;
  for (const auto& [type, count] : counts) out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", count, type);
  return out;
}

// Parameters at a number of bits that need not be whole.
Result<std::uint64_t> bytes_at(std::uint64_t parameters, double bits) {
  const double bytes = std::ceil(static_cast<double>(parameters) * bits / 8);
  if (!(bytes < 9.0e18)) return Error{ErrorCode::bad_input, fmt::format("{} parameters of {} bits are more than 64 bits can count", parameters, bits)};
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

std::vector<PlanLine> file_weights(const artifact::GgufFile& file, const artifact::ModelGeometry& geometry) {
  const model::WeightFootprint sum = model::weight_footprint(file, geometry);
  std::uint64_t experts = 0, other = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (model::tensor_class(tensor) == TensorClass::experts) experts += tensor.bytes.size();
    if (model::tensor_class(tensor) == TensorClass::other) other += tensor.bytes.size();
  }
  std::vector<PlanLine> lines;
  const auto add = [&lines](std::string name, std::uint64_t bytes, std::string how, std::string field) {
    if (bytes > 0) lines.push_back({"weights." + std::move(name), bytes, std::move(how), std::move(field)});
  };
  add("embedding", sum.embedding, types_of(file, TensorClass::embedding) + ", packed", "token_embd.weight");
  add("head", sum.head, types_of(file, TensorClass::head) + ", packed", "output.weight");
  add("attention", sum.attention, types_of(file, TensorClass::attention) + ", packed", "blk.*.attn_*");
  add("feed_forward", sum.feed_forward, types_of(file, TensorClass::feed_forward) + ", packed", "blk.*.ffn_*");
  add("experts", experts, "as in the file", "blk.*.ffn_*_exps");
  add("other", other, "as in the file", "tensors of no class");
  add("norms", sum.norms, "f32, with the rotary table", "*_norm.weight");
  return lines;
}

Result<std::vector<PlanLine>> shape_weights(const artifact::ModelShape& shape) {
  std::vector<PlanLine> lines;
  const auto add = [&](std::string name, std::uint64_t parameters, std::string field) -> Status {
    if (parameters == 0) return ok_status();
    KV_ASSIGN(const std::uint64_t bytes, bytes_at(parameters, shape.weight_bits));
    lines.push_back({std::move(name), bytes, fmt::format("{} parameters x {:g} bits", parameters, shape.weight_bits), std::move(field)});
    return ok_status();
  };
  const Result<artifact::ParameterCount> count = artifact::count_parameters(shape);
  // The published number where widths are missing or the two differ: it is what lies on the disk.
  if (!count.ok() || shape.parameters != count->total) {
    KV_TRY(add("weights", shape.parameters, "parameters"));
    return lines;
  }
  KV_TRY(add("weights.embedding", count->embedding, "vocabulary, width"));
  KV_TRY(add("weights.head", count->head, "vocabulary, width, tied_head"));
  KV_TRY(add("weights.attention", count->attention, "heads, kv_heads, head_dim"));
  KV_TRY(add("weights.feed_forward", count->feed_forward, "feed_forward, gated"));
  KV_TRY(add("weights.experts", count->experts, "experts, expert_width"));
  KV_TRY(add("weights.norms", count->norms, "width"));
  KV_TRY(add("weights.other", count->other, "other_parameters"));
  return lines;
}

}  // namespace kvasir::plan
