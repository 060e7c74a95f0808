#include "store/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/units.hpp"
#include "platform/memory.hpp"
#include "store/superpages.hpp"

namespace kvasir::store {
namespace {

constexpr std::uint64_t kMaxBlocks = std::numeric_limits<BlockId>::max();

Error too_small(std::uint64_t needed, std::uint64_t capacity) {
  return {ErrorCode::does_not_fit, fmt::format("kv-cache-memory = {} ({} bytes); one sequence needs {} ({} bytes)",
                                               format_bytes(capacity), capacity, format_bytes(needed), needed)};
}

Result<std::vector<GroupPlan>> layouts(const format::KvGeometry& geometry) {
  if (geometry.groups.empty())
    return Error{ErrorCode::bad_input, "the KV geometry has 0 cache groups; at least 1 is needed"};
  std::vector<GroupPlan> groups(geometry.groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    KV_ASSIGN(groups[g].layout, format::BlockLayout::create(geometry.groups[g]));
  }
  return groups;
}

std::uint64_t rows_per_superpage(const GroupPlan& g) {
  return std::uint64_t{g.blocks_per_superpage} * g.layout.block_tokens();
}

// Superpage size of several groups, and how each slices it. In whole pages, the smallest that will do: huge pages back
// the arena as a whole, so a superpage need not be a multiple of them.
Result<std::uint64_t> slice_superpages(std::vector<GroupPlan>& groups) {
  std::vector<std::uint64_t> block_bytes;
  for (const GroupPlan& g : groups) block_bytes.push_back(g.layout.block_bytes());
  KV_ASSIGN(const std::uint64_t superpage, choose_superpage_bytes(block_bytes, platform::page_bytes()));
  for (GroupPlan& g : groups)
    g.blocks_per_superpage = static_cast<std::uint32_t>(std::min(superpage / g.layout.block_bytes(), kMaxBlocks));
  return superpage;
}

// One superpage after the other to the group that would run out first: no other sharing serves a longer sequence.
void share_superpages(std::vector<GroupPlan>& groups, std::uint64_t superpages) {
  const auto rows = [](const GroupPlan& g) { return g.superpages * rows_per_superpage(g); };
  for (; superpages > 0; --superpages) ++std::ranges::min_element(groups, {}, rows)->superpages;
}

// Superpages of all groups together that `usable` bytes hold.
Result<std::uint64_t> cut_groups(StorePlan& plan, std::uint64_t usable) {
  if (plan.groups.size() > 1) {
    KV_ASSIGN(plan.superpage_bytes, slice_superpages(plan.groups));
    share_superpages(plan.groups, usable / plan.superpage_bytes);
    return usable / plan.superpage_bytes;
  }
  GroupPlan& only = plan.groups[0];
  only.superpages = 1;
  only.blocks_per_superpage = static_cast<std::uint32_t>(std::min(usable / only.layout.block_bytes(), kMaxBlocks));
  plan.superpage_bytes = only.blocks_per_superpage * only.layout.block_bytes();
  return 1;
}

}  // namespace

std::uint64_t StorePlan::max_rows() const {
  std::uint64_t rows = std::numeric_limits<std::uint64_t>::max();
  for (const GroupPlan& g : groups) rows = std::min(rows, std::uint64_t{g.blocks} * g.layout.block_tokens());
  return rows;
}

Result<StorePlan> plan_store(const format::KvGeometry& geometry, std::uint64_t capacity_bytes,
                             std::uint64_t minimum_rows) {
  StorePlan plan;
  plan.capacity_bytes = capacity_bytes;
  KV_ASSIGN(plan.groups, layouts(geometry));
  const std::uint64_t usable = capacity_bytes / platform::page_bytes() * platform::page_bytes();
  KV_ASSIGN(const std::uint64_t superpages, cut_groups(plan, usable));
  plan.arena_bytes = superpages * plan.superpage_bytes;
  std::uint64_t used = 0, first = 0;
  for (GroupPlan& g : plan.groups) {
    g.first_superpage = first;
    first += g.superpages;
    g.blocks = static_cast<std::uint32_t>(std::min(g.superpages * g.blocks_per_superpage, kMaxBlocks));
    used += g.bytes();
  }
  plan.slack_bytes = capacity_bytes - used;
  if (minimum_rows == 0) minimum_rows = 1;
  if (plan.max_rows() >= minimum_rows) return plan;
  KV_ASSIGN(const std::uint64_t needed, capacity_for_rows(geometry, minimum_rows));
  return too_small(needed, capacity_bytes);
}

Result<StorePlan> plan_blocks(const format::KvGeometry& geometry, std::span<const std::uint64_t> blocks) {
  StorePlan plan;
  KV_ASSIGN(plan.groups, layouts(geometry));
  KV_CHECK(blocks.size() == plan.groups.size(), "one number of blocks a group");
  for (std::size_t g = 0; g < blocks.size(); ++g) {
    if (blocks[g] > kMaxBlocks)
      return Error{ErrorCode::bad_input, fmt::format("{} blocks of one cache group; at most {} can be numbered", blocks[g], kMaxBlocks)};
    plan.groups[g].blocks = static_cast<std::uint32_t>(blocks[g]);
  }
  if (plan.groups.size() > 1) {
    KV_ASSIGN(plan.superpage_bytes, slice_superpages(plan.groups));
  } else {
    GroupPlan& only = plan.groups[0];
    only.blocks_per_superpage = std::max(only.blocks, 1u);
    KV_ASSIGN(plan.superpage_bytes, checked_mul(only.blocks, only.layout.block_bytes()));
  }
  std::uint64_t superpages = 0, used = 0;
  for (GroupPlan& g : plan.groups) {
    g.first_superpage = superpages;
    g.superpages = ceil_div(g.blocks, g.blocks_per_superpage);
    superpages += g.superpages;
    KV_ASSIGN(const std::uint64_t bytes, checked_mul(g.blocks, g.layout.block_bytes()));
    KV_ASSIGN(used, checked_add(used, bytes));
  }
  KV_ASSIGN(plan.arena_bytes, checked_mul(superpages, plan.superpage_bytes));
  KV_TRY(checked_add(plan.arena_bytes, platform::page_bytes()));
  plan.capacity_bytes = round_up(plan.arena_bytes, platform::page_bytes());
  plan.slack_bytes = plan.capacity_bytes - used;
  return plan;
}

Result<std::uint64_t> capacity_for_rows(const format::KvGeometry& geometry, std::uint64_t rows) {
  KV_ASSIGN(std::vector<GroupPlan> groups, layouts(geometry));
  if (rows == 0) rows = 1;
  const auto pieces = [rows](std::uint64_t piece) { return rows / piece + (rows % piece != 0 ? 1 : 0); };
  if (groups.size() == 1) {
    const format::BlockLayout& layout = groups[0].layout;
    KV_ASSIGN(const std::uint64_t bytes, checked_mul(pieces(layout.block_tokens()), layout.block_bytes()));
    KV_TRY(checked_add(bytes, platform::page_bytes()));
    return round_up(bytes, platform::page_bytes());
  }
  KV_ASSIGN(const std::uint64_t superpage, slice_superpages(groups));
  std::uint64_t superpages = 0;
  for (const GroupPlan& g : groups) superpages += pieces(rows_per_superpage(g));
  return checked_mul(superpages, superpage);
}

}  // namespace kvasir::store
