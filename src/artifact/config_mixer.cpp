#include "artifact/config_mixer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/recurrent.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr Range kHeadsRange{1, kMaxHeads}, kDimRange{1, kMaxHeadDim}, kKernelRange{1, kMaxConvKernel};

// Qwen3-Next: keys have fewer heads than values.
Result<Recurrent> gated_delta(const ConfigFields& fields) {
  Recurrent mixer{.mixer = Mixer::gated_delta};
  KV_ASSIGN(mixer.heads, fields.whole("state", {"linear_num_value_heads"}, kHeadsRange));
  KV_ASSIGN(mixer.key_heads, fields.whole("", {"linear_num_key_heads"}, kHeadsRange));
  KV_ASSIGN(mixer.key_dim, fields.whole("", {"linear_key_head_dim"}, kDimRange));
  KV_ASSIGN(mixer.value_dim, fields.whole("", {"linear_value_head_dim"}, kDimRange));
  KV_ASSIGN(mixer.conv_kernel, fields.whole("", {"linear_conv_kernel_dim"}, kKernelRange));
  if (mixer.heads % mixer.key_heads != 0)
    return fields.bad("linear_num_key_heads", nlohmann::json(mixer.key_heads),
                      fmt::format("a divisor of {} value heads", mixer.heads));
  return mixer;
}

Result<Recurrent> kimi_delta(const ConfigFields& fields) {
  Recurrent mixer{.mixer = Mixer::kimi_delta};
  KV_ASSIGN(mixer.heads, fields.whole("state", {"linear_attn_config.num_heads"}, kHeadsRange));
  KV_ASSIGN(mixer.key_dim, fields.whole("", {"linear_attn_config.head_dim"}, kDimRange));
  KV_ASSIGN(mixer.conv_kernel, fields.whole_or("", {"linear_attn_config.short_conv_kernel_size"}, kKernelRange, 4));
  mixer.value_dim = mixer.key_dim;
  return mixer;
}

// MiniMax: as many heads as its attention has query heads, as wide.
Result<Recurrent> lightning(const ConfigFields& fields, const ModelShape& shape) {
  Recurrent mixer{.mixer = Mixer::lightning};
  KV_ASSIGN(mixer.heads, fields.whole("state", {"num_attention_heads"}, kHeadsRange));
  KV_ASSIGN(mixer.key_dim, fields.whole_or("", {"head_dim"}, kDimRange, shape.width / mixer.heads));
  if (mixer.key_dim == 0 || mixer.key_dim > kMaxHeadDim)
    return fields.bad("num_attention_heads", nlohmann::json(mixer.heads), "heads of 1 to 65536 elements, or a field 'head_dim'");
  mixer.value_dim = mixer.key_dim;
  return mixer;
}

Result<Recurrent> mamba2(const ConfigFields& fields, const ModelShape& shape) {
  Recurrent mixer{.mixer = Mixer::mamba2};
  KV_ASSIGN(mixer.heads, fields.whole("state", {"mamba_num_heads", "mamba_n_heads"}, kHeadsRange));
  const auto* dim = fields.find("mamba_d_head");
  if (dim != nullptr && *dim == "auto") {
    KV_ASSIGN(const auto expand, fields.whole_or("", {"mamba_expand"}, {1, 64}, 2));
    mixer.value_dim = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        std::max<std::uint64_t>(std::uint64_t{shape.width} * expand / mixer.heads, 1), kMaxHeadDim));
  } else {
    KV_ASSIGN(mixer.value_dim, fields.whole("", {"mamba_head_dim", "mamba_d_head"}, kDimRange));
  }
  KV_ASSIGN(mixer.state, fields.whole("", {"ssm_state_size", "mamba_d_state", "mamba_state_dim"}, kDimRange));
  KV_ASSIGN(mixer.groups, fields.whole_or("", {"n_groups", "mamba_n_groups", "mamba_num_groups"}, kHeadsRange, 1));
  KV_ASSIGN(mixer.conv_kernel, fields.whole_or("", {"conv_kernel", "mamba_d_conv"}, kKernelRange, 4));
  return mixer;
}

Result<Recurrent> mamba1(const ConfigFields& fields, const ModelShape& shape) {
  Recurrent mixer{.mixer = Mixer::mamba};
  KV_ASSIGN(mixer.state, fields.whole("state", {"mamba_d_state"}, kDimRange));
  KV_ASSIGN(const auto expand, fields.whole_or("", {"mamba_expand"}, {1, 64}, 2));
  KV_ASSIGN(mixer.conv_kernel, fields.whole_or("", {"mamba_d_conv"}, kKernelRange, 4));
  const auto* rank = fields.find("mamba_dt_rank");
  const bool automatic = rank == nullptr || *rank == "auto";
  mixer.rank = (shape.width + 15) / 16;
  if (!automatic) {
    KV_ASSIGN(mixer.rank, fields.whole("", {"mamba_dt_rank"}, {1, kMaxWidth}));
  }
  if (std::uint64_t{shape.width} * expand > kMaxWidth)
    return fields.bad("mamba_expand", nlohmann::json(expand), fmt::format("at most {} channels in all", kMaxWidth));
  mixer.inner = shape.width * expand;
  return mixer;
}

Result<Recurrent> short_conv(const ConfigFields& fields) {
  Recurrent mixer{.mixer = Mixer::short_conv};
  KV_ASSIGN(mixer.conv_kernel, fields.whole("state", {"conv_L_cache"}, {2, kMaxConvKernel}));
  return mixer;
}

Result<Recurrent> mixer_of(const ConfigFields& fields, LayerKind kind, const ModelShape& shape) {
  if (kind == LayerKind::conv) return short_conv(fields);
  if (kind == LayerKind::mamba)
    return fields.first_of({"mamba_num_heads", "mamba_n_heads"}) ? mamba2(fields, shape) : mamba1(fields, shape);
  if (fields.has("linear_num_value_heads")) return gated_delta(fields);
  if (fields.has("linear_attn_config")) return kimi_delta(fields);
  return lightning(fields, shape);
}

Result<std::uint32_t> state_bytes(const ConfigFields& fields, Mixer mixer) {
  const auto name = fields.first_of({"mamba_ssm_cache_dtype", "mamba_ssm_dtype", "state_dtype"});
  if (!name) return default_state_bytes(mixer);
  KV_ASSIGN(const auto type, fields.find_text("state_bytes", *name));
  if (*type == "float32") return 4u;
  if (*type == "float16" || *type == "bfloat16") return 2u;
  if (*type == "auto") return default_state_bytes(mixer);
  return fields.bad(*name, nlohmann::json(*type), "float32, float16, bfloat16, auto");
}

}  // namespace

Status read_mixers(const ConfigFields& fields, const std::vector<LayerKind>& kinds, ModelShape& shape) {
  for (const LayerKind kind : {LayerKind::linear, LayerKind::mamba, LayerKind::conv}) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    KV_ASSIGN(const Recurrent mixer, mixer_of(fields, kind, shape));
    KV_ASSIGN(const std::uint32_t bytes, state_bytes(fields, mixer.mixer));
    const std::uint64_t elements = state_elements(mixer, shape.width), weights = mixer_parameters(mixer, shape.width);
    for (std::size_t at = 0; at < kinds.size(); ++at) {
      if (kinds[at] != kind) continue;
      LayerShape& layer = shape.layers[at];
      layer.memory = Memory::recurrent;
      layer.state_elements = elements;
      layer.state_bytes = bytes;
      layer.mixer_parameters = weights;
    }
  }
  return ok_status();
}

}  // namespace kvasir::artifact
