#include "format/block_layout.hpp"

#include <fmt/format.h>

#include "base/units.hpp"

namespace kvasir::format {

Result<BlockLayout> BlockLayout::create(const CacheGroup& group) {
  const std::uint32_t tokens = group.block_tokens;
  if (tokens < kKeysPerTile || tokens > kSpanTokens || kSpanTokens % tokens != 0)
    return Error{ErrorCode::bad_input, fmt::format("block size {} is not valid; valid are 16, 32, 64, 128 and 256", tokens)};
  if (group.head_dim == 0 || group.head_dim % 8 != 0)
    return Error{ErrorCode::unsupported, fmt::format("head dimension {} is not a positive multiple of 8", group.head_dim)};
  const std::uint32_t v_dim = group.v_dim.value_or(group.head_dim);
  if (v_dim % 8 != 0) return Error{ErrorCode::unsupported, fmt::format("V head dimension {} is not a multiple of 8", v_dim)};
  if (group.kv_heads == 0 || group.layers.empty())
    return Error{ErrorCode::bad_input, "a cache group needs at least one layer and one KV head"};

  BlockLayout layout;
  layout.block_tokens_ = tokens;
  layout.head_dim_ = group.head_dim;
  layout.kv_heads_ = group.kv_heads;
  layout.layers_ = static_cast<std::uint32_t>(group.layers.size());
  layout.format_ = group.format;
  layout.k_tile_bytes_ = std::size_t{group.head_dim} * kKeysPerTile * element_bits(group.format.k) / 8;
  layout.v_start_ = layout.k_tile_bytes_ * (tokens / kKeysPerTile) + std::size_t{tokens} * row_scale_bytes(group.format.k);
  const std::size_t v_scale_bytes = v_dim == 0 ? 0 : row_scale_bytes(group.format.v);
  layout.head_bytes_ = layout.v_start_ + tokens * (std::size_t{v_dim} * element_bits(group.format.v) / 8 + v_scale_bytes);
  layout.scale_bytes_ = (row_scale_bytes(group.format.k) + v_scale_bytes) * group.kv_heads * group.layers.size();
  KV_ASSIGN(layout.layer_bytes_, checked_mul(layout.head_bytes_, group.kv_heads));
  KV_ASSIGN(layout.block_bytes_, checked_mul(layout.layer_bytes_, group.layers.size()));
  return layout;
}

}  // namespace kvasir::format
