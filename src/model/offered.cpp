#include "model/offered.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "model/architecture.hpp"
#include "model/model.hpp"

namespace kvasir::model {
namespace {

using artifact::GgufFile;
using artifact::ModelGeometry;
using artifact::RopeScaling;

// Keys that change answers and that no step reads. `read_by`: the architecture for which ModelGeometry reads it.
struct UnreadKey {
  std::string_view suffix, read_by;
};
constexpr UnreadKey kUnread[] = {
    {"embedding_scale", "granite"},  {"residual_scale", "granite"},   {"attention.scale", "granite"},
    {"logit_scale", "granite"},      {"expert_count", ""},            {"attention.clamp_kqv", ""},
    {"attn_logit_softcapping", ""},  {"final_logit_softcapping", ""}, {"attention.chunk_size", ""},
    {"attention.kv_lora_rank", ""},  {"attention.temperature_scale", ""}};

Status check_unread(const GgufFile& file, const ModelGeometry& g) {
  for (const UnreadKey& key : kUnread) {
    const std::string name = fmt::format("{}.{}", g.architecture, key.suffix);
    if (key.read_by == g.architecture || file.find(name) == nullptr) continue;
    const auto value = file.get_float(name);
    if (value.ok() && *value == 0) continue;   // zero: none of it
    return Error{ErrorCode::unsupported, fmt::format("{}: metadata key '{}' has no place in the forward pass of {}", file.name(), name,
                                                     g.architecture)};
  }
  return ok_status();
}

Status check_rope(const GgufFile& file, const ModelGeometry& g) {
  const artifact::Rope& rope = g.rope;
  if (rope.pairing == artifact::RopePairing::none || rope.dim == 0 || rope.dim % 2 != 0 || rope.dim > g.head_dim)
    return Error{ErrorCode::bad_input, fmt::format("{}: rope.dimension_count is {}; an even number up to the head dimension {} is needed",
                                                   file.name(), rope.dim, g.head_dim)};
  const bool by_original = rope.scaling == RopeScaling::yarn || rope.scaling == RopeScaling::longrope;
  if (by_original && rope.original_context == 0)
    return Error{ErrorCode::bad_input, fmt::format("{}: rope scaling '{}' needs '{}.rope.scaling.original_context_length', a positive number",
                                                   file.name(), to_string(rope.scaling), g.architecture)};
  if (rope.scaling == RopeScaling::yarn && !(rope.beta_fast > rope.beta_slow))
    return Error{ErrorCode::bad_input, fmt::format("{}: rope.scaling.yarn_beta_fast is {} and yarn_beta_slow is {}; the first is the larger",
                                                   file.name(), rope.beta_fast, rope.beta_slow)};
  const std::string finetuned = g.architecture + ".rope.scaling.finetuned";
  if (g.architecture == "granite" && file.find(finetuned) != nullptr) {
    KV_ASSIGN(const bool turns, file.get_bool(finetuned));
    if (!turns)
      return Error{ErrorCode::unsupported, fmt::format("{}: metadata key '{}' is false: a model without positions is not offered", file.name(), finetuned)};
  }
  return ok_status();
}

}  // namespace

Status check_offered(const GgufFile& file, const ModelGeometry& g) {
  if (find_architecture(g.architecture) == nullptr)
    return Error{ErrorCode::unsupported, fmt::format("{}: general.architecture '{}' has no forward pass here; offered are {}",
                                                     file.name(), g.architecture, fmt::join(Model::architectures(), ", "))};
  if (!g.window_layers_known && g.window < g.context)
    return Error{ErrorCode::unsupported,
                 fmt::format("{}: a sliding window of {} tokens in a model of architecture {}: which of its layers have it is not known; "
                             "'{}.attention.sliding_window_pattern' would say", file.name(), g.window, g.architecture, g.architecture)};
  KV_TRY(check_rope(file, g));
  KV_TRY(check_unread(file, g));
  if (g.head_dim % 8 != 0)
    return Error{ErrorCode::unsupported, fmt::format("{}: head dimension {} is not a multiple of 8", file.name(), g.head_dim)};
  if (std::find(g.kv_heads.begin(), g.kv_heads.end(), 0u) != g.kv_heads.end())
    return Error{ErrorCode::unsupported, fmt::format("{}: attention.head_count_kv is 0 for a layer; layers without attention are not offered", file.name())};
  return ok_status();
}

}  // namespace kvasir::model
