#include "artifact/model_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::artifact {
namespace {

Error bad(std::string_view source, std::string_view what) {
  return Error{ErrorCode::bad_input, fmt::format("{}: {}", source, what)};
}

Status check_size(std::string_view source, std::string_view name, std::uint64_t value, std::uint64_t least,
                  std::uint64_t most) {
  if (value >= least && value <= most) return ok_status();
  return bad(source, fmt::format("{} is {}; valid are {} to {}", name, value, least, most));
}

Status check_rows(const LayerShape& layer, std::size_t at, std::uint32_t heads, std::string_view source) {
  using namespace shape_limits;
  const auto of_layer = [at](std::string_view name) { return fmt::format("{} of layer {}", name, at); };
  KV_TRY(check_size(source, of_layer("kv_heads"), layer.kv_heads, 1, kMaxHeads));
  KV_TRY(check_size(source, of_layer("k_dim"), layer.k_dim, 1, kMaxHeadDim));
  KV_TRY(check_size(source, of_layer("v_dim"), layer.v_dim, layer.memory == Memory::latent ? 0 : 1, kMaxHeadDim));
  KV_TRY(check_size(source, of_layer("index_dim"), layer.index_dim, 0, kMaxHeadDim));
  KV_TRY(check_size(source, of_layer("window"), layer.window, 0, kMaxTokens));
  KV_TRY(check_size(source, of_layer("merged"), layer.merged, 1, kMaxTokens));
  if (heads != 0 && heads % layer.kv_heads != 0)
    return bad(source, fmt::format("kv_heads of layer {} is {}, which does not divide {} query heads; a divisor is valid", at,
                                   layer.kv_heads, heads));
  return ok_status();
}

Status check_layer(const LayerShape& layer, std::size_t at, std::uint32_t heads, std::string_view source) {
  using namespace shape_limits;
  if (layer.memory == Memory::attention || layer.memory == Memory::latent) KV_TRY(check_rows(layer, at, heads, source));
  const auto of_layer = [at](std::string_view name) { return fmt::format("{} of layer {}", name, at); };
  if (layer.memory == Memory::recurrent)
    KV_TRY(check_size(source, of_layer("state_elements"), layer.state_elements, 1, kMaxParameters));
  KV_TRY(check_size(source, of_layer("feed_forward"), layer.feed_forward, 0, kMaxWidth));
  KV_TRY(check_size(source, of_layer("experts"), layer.experts, 0, kMaxExperts));
  KV_TRY(check_size(source, of_layer("shared_experts"), layer.shared_experts, 0, kMaxExperts));
  KV_TRY(check_size(source, of_layer("expert_width"), layer.expert_width, layer.experts == 0 ? 0 : 1, kMaxWidth));
  return ok_status();
}

}  // namespace

Status check_shape(const ModelShape& shape, std::string_view source) {
  using namespace shape_limits;
  KV_TRY(check_size(source, "layers", shape.layers.size(), 1, kMaxLayers));
  KV_TRY(check_size(source, "width", shape.width, 1, kMaxWidth));
  KV_TRY(check_size(source, "heads", shape.heads, 0, kMaxHeads));
  KV_TRY(check_size(source, "vocabulary", shape.vocabulary, 1, kMaxTokens));
  KV_TRY(check_size(source, "context", shape.context, 1, kMaxTokens));
  bool any = false;
  std::uint32_t experts = 0;
  for (std::size_t at = 0; at < shape.layers.size(); ++at) {
    KV_TRY(check_layer(shape.layers[at], at, shape.heads, source));
    any = any || shape.layers[at].memory != Memory::none;
    experts = std::max(experts, shape.layers[at].experts);
  }
  if (!any) return bad(source, "no layer keeps anything; at least one has attention or a state");
  if (shape.experts_per_token > experts)
    return bad(source, fmt::format("experts_per_token is {} of {} experts; valid are 0 to {}", shape.experts_per_token, experts,
                                   experts));
  return ok_status();
}

}  // namespace kvasir::artifact
