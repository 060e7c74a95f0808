#include "plan/kv_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>

#include "base/units.hpp"
#include "format/block_count.hpp"

namespace kvasir::plan {
namespace {

using artifact::LayerShape;
using artifact::Memory;

// What two layers must have in common to share a block.
struct RowShape {
  GroupKind kind;
  std::uint32_t kv_heads, k_dim, v_dim, window, merged;
  bool skipped = false;   // kept at f16
  auto operator<=>(const RowShape&) const = default;
};

constexpr format::KvFormat kSkippedFormat{format::KvType::f16, format::KvType::f16};

GroupKind kind_of(const LayerShape& layer) {
  if (layer.memory == Memory::latent) return GroupKind::latent;
  if (layer.window == 0) return GroupKind::full;
  return layer.chunked ? GroupKind::chunk : GroupKind::window;
}

// A layer's rows; those of recent tokens besides merged ones; those of its index.
std::vector<RowShape> rows_of(const LayerShape& layer) {
  if (layer.memory != Memory::attention && layer.memory != Memory::latent) return {};
  std::vector<RowShape> rows{{kind_of(layer), layer.kv_heads, layer.k_dim, layer.v_dim, layer.window, layer.merged}};
  if (layer.recent > 0) rows.push_back({GroupKind::window, layer.kv_heads, layer.k_dim, layer.v_dim, layer.recent, 1});
  if (layer.index_dim > 0) rows.push_back({GroupKind::index, 1, layer.index_dim, 0, layer.window, layer.merged});
  return rows;
}

struct Building {
  RowShape shape;
  std::vector<std::uint32_t> layers;
};

Result<PlannedGroup> finish(const Building& built, const KvChoice& choice) {
  PlannedGroup out;
  out.kind = built.shape.kind;
  out.merged = built.shape.merged;
  out.group = {.layers = built.layers,
               .kv_heads = built.shape.kv_heads,
               .head_dim = built.shape.k_dim,
               .format = built.shape.skipped ? kSkippedFormat : choice.format,
               .window = built.shape.window,
               .block_tokens = choice.block_tokens,
               .v_dim = built.shape.v_dim,
               .chunked = built.shape.kind == GroupKind::chunk};
  Result<format::BlockLayout> layout = format::BlockLayout::create(out.group);
  if (!layout.ok()) {
    Error error = std::move(layout).error();
    error.message = fmt::format("layer {}: {}", built.layers.front(), error.message);
    return error;
  }
  out.layout = *layout;
  return out;
}

bool is_skipped(const RowShape& rows, std::uint32_t layer, const KvChoice& choice) {
  if (choice.format == kSkippedFormat) return false;   // one group, as without the choice
  if (choice.skip_windows && rows.window != 0) return true;
  return std::find(choice.skip_layers.begin(), choice.skip_layers.end(), layer) != choice.skip_layers.end();
}

Status check_skips(const KvChoice& choice, std::size_t layers) {
  for (const std::uint32_t layer : choice.skip_layers) {
    if (layer >= layers) return Error{ErrorCode::bad_input, fmt::format("layer {} to keep at f16 is not one of 0 to {}", layer, layers - 1)};
  }
  return ok_status();
}

template <class Bytes>
Result<std::uint64_t> sum_over(const std::vector<PlannedGroup>& groups, Bytes&& bytes_of) {
  std::uint64_t sum = 0;
  for (const PlannedGroup& g : groups) {
    KV_ASSIGN(const std::uint64_t bytes, bytes_of(g));
    KV_ASSIGN(sum, checked_add(sum, bytes));
  }
  return sum;
}

}  // namespace

std::string_view to_string(GroupKind kind) {
  switch (kind) {
    case GroupKind::full: return "full";
    case GroupKind::window: return "window";
    case GroupKind::chunk: return "chunk";
    case GroupKind::latent: return "latent";
    case GroupKind::index: return "index";
  }
  return "?";
}

std::uint64_t PlannedGroup::rows(std::uint64_t length) const {
  const std::uint64_t stored = ceil_div(length, merged);
  return group.window == 0 ? stored : std::min<std::uint64_t>(stored, group.window);
}

std::uint64_t PlannedGroup::blocks(std::uint64_t length) const {
  const std::uint64_t stored = ceil_div(length, merged);
  return format::blocks_held(stored, group.reach(), 1, layout.block_tokens());
}

std::uint64_t PlannedGroup::blocks_beyond(std::uint64_t length, std::uint64_t more) const {
  if (more == 0) return 0;
  PlannedGroup wider = *this;
  if (group.window != 0) {
    // The rows looked back on stay while the draft's are added.
    wider.group.window += static_cast<std::uint32_t>(std::min<std::uint64_t>(ceil_div(more, merged), UINT32_MAX - group.window));
    wider.kind = GroupKind::window;
    wider.group.chunked = false;
  }
  const std::uint64_t before = blocks(length), after = wider.blocks(length + more);
  return after - std::min(after, before);
}

std::uint64_t PlannedGroup::step_blocks(std::uint64_t length, std::uint64_t step_rows) const {
  const std::uint64_t stored = ceil_div(length, merged), step = ceil_div(step_rows, merged);
  return format::blocks_held(stored, group.reach(), step, layout.block_tokens()) - blocks(length);
}

std::uint64_t PlannedGroup::private_blocks(std::uint64_t length, std::uint64_t prompt) const {
  const std::uint64_t all = format::blocks_for_rows(ceil_div(length, merged), layout.block_tokens());
  const std::uint64_t shared = prompt / merged / layout.block_tokens();
  return std::min(blocks(length), all - std::min(all, shared));
}

std::uint64_t PlannedGroup::growth_bytes() const {
  return group.window != 0 ? 0 : layout.bytes_per_token() / merged;
}

format::KvGeometry KvGroups::geometry() const {
  format::KvGeometry out;
  for (const PlannedGroup& g : groups) out.groups.push_back(g.group);
  return out;
}

Result<std::uint64_t> KvGroups::payload_bytes(std::uint64_t length) const {
  return sum_over(groups, [length](const PlannedGroup& g) { return checked_mul(g.rows(length), g.layout.bytes_per_token()); });
}

Result<std::uint64_t> KvGroups::block_bytes(std::uint64_t length) const {
  return sum_over(groups, [length](const PlannedGroup& g) { return checked_mul(g.blocks(length), g.layout.block_bytes()); });
}

std::uint64_t KvGroups::growth_bytes() const {
  std::uint64_t sum = 0;
  for (const PlannedGroup& g : groups) sum += g.growth_bytes();
  return sum;
}

std::uint64_t KvGroups::growth_below_windows_bytes() const {
  std::uint64_t sum = 0;
  for (const PlannedGroup& g : groups) sum += g.layout.bytes_per_token() / g.merged;
  return sum;
}

Result<KvGroups> kv_groups(const artifact::ModelShape& shape, const KvChoice& choice) {
  std::vector<Building> building;   // in the order of their first layers
  std::map<RowShape, std::size_t> place;
  KvGroups out;
  KV_TRY(check_skips(choice, shape.layers.size()));
  for (std::uint32_t layer = 0; layer < shape.layers.size(); ++layer) {
    const LayerShape& one = shape.layers[layer];
    if (one.memory == Memory::recurrent) {
      KV_ASSIGN(const std::uint64_t bytes, checked_mul(one.state_elements, one.state_bytes));
      KV_ASSIGN(out.state_bytes, checked_add(out.state_bytes, bytes));
      ++out.recurrent_layers;
    }
    for (RowShape rows : rows_of(one)) {
      rows.skipped = is_skipped(rows, layer, choice);
      const auto [at, added] = place.emplace(rows, building.size());
      if (added) building.push_back({rows, {}});
      building[at->second].layers.push_back(layer);
    }
  }
  for (const Building& built : building) {
    KV_ASSIGN(PlannedGroup group, finish(built, choice));
    out.groups.push_back(std::move(group));
  }
  return out;
}

}  // namespace kvasir::plan
