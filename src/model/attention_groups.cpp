#include "model/attention_groups.hpp"

#include <algorithm>

namespace kvasir::model {

AttentionGroups attention_groups(const artifact::ModelGeometry& geometry) {
  AttentionGroups out;
  out.places.resize(geometry.layers);
  const format::KvGeometry kv = geometry.kv_geometry({}, format::kKeysPerTile);   // what a block holds does not matter here
  for (std::uint32_t group = 0; group < kv.groups.size(); ++group) {
    out.shapes.push_back({.heads = geometry.heads, .kv_heads = kv.groups[group].kv_heads, .head_dim = geometry.head_dim,
                          .reach = kv.groups[group].reach()});
    for (std::uint32_t slot = 0; slot < kv.groups[group].layers.size(); ++slot)
      out.places[kv.groups[group].layers[slot]] = {group, slot};
  }
  return out;
}

AttentionSizes widest_sizes(const AttentionGroups& groups, std::uint32_t max_rows, std::uint32_t max_sequences,
                            std::uint32_t max_context, std::size_t threads) {
  AttentionSizes widest;
  for (const AttentionShape& shape : groups.shapes) {
    const AttentionSizes one = attention_sizes(shape, max_rows, max_sequences, max_context, threads);
    widest.tile_lines = std::max(widest.tile_lines, one.tile_lines);
    widest.split_lines = std::max(widest.split_lines, one.split_lines);
  }
  return widest;
}

std::uint32_t most_kv_heads(const artifact::ModelGeometry& geometry) {
  return *std::max_element(geometry.kv_heads.begin(), geometry.kv_heads.end());
}

}  // namespace kvasir::model
