#include "store/footprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/units.hpp"
#include "format/block_count.hpp"
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
    groups[g].reach = geometry.groups[g].reach();
  }
  return groups;
}

// Superpage size of several groups, and how each slices it. In whole pages, the smallest that will do: huge pages back
// the arena as a whole, so a superpage need not be a multiple of them.
Status slice_superpages(StorePlan& plan) {
  std::vector<std::uint64_t> block_bytes;
  for (const GroupPlan& g : plan.groups) block_bytes.push_back(g.layout.block_bytes());
  KV_ASSIGN(plan.superpage_bytes, choose_superpage_bytes(block_bytes, platform::page_bytes()));
  for (GroupPlan& g : plan.groups)
    g.blocks_per_superpage = static_cast<std::uint32_t>(std::min(plan.superpage_bytes / g.layout.block_bytes(), kMaxBlocks));
  return ok_status();
}

// One group's only superpage has as many blocks as asked for.
Status slice_alone(StorePlan& plan, std::uint64_t blocks) {
  GroupPlan& only = plan.groups[0];
  only.blocks_per_superpage = static_cast<std::uint32_t>(blocks);
  KV_ASSIGN(plan.superpage_bytes, checked_mul(blocks, only.layout.block_bytes()));
  return ok_status();
}

Status lay_out(StorePlan& plan, std::uint64_t superpages) {
  std::uint32_t most = 1;   // blocks of a superpage: ids of every group must be numbers
  for (const GroupPlan& g : plan.groups) most = std::max(most, g.blocks_per_superpage);
  plan.superpages = std::min(superpages, kMaxBlocks / most);
  for (GroupPlan& g : plan.groups) g.blocks = static_cast<std::uint32_t>(plan.superpages * g.blocks_per_superpage);
  KV_ASSIGN(plan.arena_bytes, checked_mul(plan.superpages, plan.superpage_bytes));
  return ok_status();
}

std::uint64_t held(const GroupPlan& g, std::uint64_t rows, std::uint64_t step_rows) {
  return format::blocks_held(rows, g.reach, step_rows == 0 ? rows : step_rows, g.layout.block_tokens());
}

}  // namespace

std::uint64_t StorePlan::max_rows(std::uint64_t step_rows) const {
  const auto fits = [&](std::uint64_t rows) {
    std::uint64_t needed = 0;
    for (const GroupPlan& g : groups)
      needed += g.blocks_per_superpage == 0 ? superpages + 1 : ceil_div(held(g, rows, step_rows), g.blocks_per_superpage);
    return needed <= superpages;
  };
  std::uint64_t fitting = 0, beyond = kMaxBlocks + 1;
  while (beyond - fitting > 1) {
    const std::uint64_t rows = fitting + (beyond - fitting) / 2;
    (fits(rows) ? fitting : beyond) = rows;
  }
  return fitting;
}

Result<StorePlan> plan_store(const format::KvGeometry& geometry, std::uint64_t capacity_bytes,
                             std::uint64_t minimum_rows) {
  StorePlan plan;
  plan.capacity_bytes = capacity_bytes;
  KV_ASSIGN(plan.groups, layouts(geometry));
  const std::uint64_t usable = capacity_bytes / platform::page_bytes() * platform::page_bytes();
  const bool alone = plan.groups.size() == 1;
  KV_TRY(alone ? slice_alone(plan, std::min(usable / plan.groups[0].layout.block_bytes(), kMaxBlocks)) : slice_superpages(plan));
  KV_TRY(lay_out(plan, alone ? 1 : usable / plan.superpage_bytes));
  plan.slack_bytes = capacity_bytes - plan.arena_bytes;
  if (minimum_rows == 0) minimum_rows = 1;
  if (plan.max_rows() >= minimum_rows) return plan;
  KV_ASSIGN(const std::uint64_t needed, capacity_for_rows(geometry, minimum_rows));
  return too_small(needed, capacity_bytes);
}

Result<StorePlan> plan_blocks(const format::KvGeometry& geometry, std::span<const std::uint64_t> blocks) {
  StorePlan plan;
  KV_ASSIGN(plan.groups, layouts(geometry));
  KV_CHECK(blocks.size() == plan.groups.size(), "one number of blocks a group");
  for (const std::uint64_t wanted : blocks) {
    if (wanted > kMaxBlocks)
      return Error{ErrorCode::bad_input, fmt::format("{} blocks of one cache group; at most {} can be numbered", wanted, kMaxBlocks)};
  }
  const bool alone = blocks.size() == 1;
  KV_TRY(alone ? slice_alone(plan, std::max<std::uint64_t>(blocks[0], 1)) : slice_superpages(plan));
  std::uint64_t superpages = 0, used = 0;
  for (std::size_t g = 0; g < blocks.size(); ++g) {
    superpages += ceil_div(blocks[g], plan.groups[g].blocks_per_superpage);
    KV_ASSIGN(const std::uint64_t bytes, checked_mul(blocks[g], plan.groups[g].layout.block_bytes()));
    KV_ASSIGN(used, checked_add(used, bytes));
  }
  KV_ASSIGN(const std::uint64_t arena, checked_mul(superpages, plan.superpage_bytes));
  KV_TRY(checked_add(arena, platform::page_bytes()));
  KV_TRY(lay_out(plan, superpages));
  plan.capacity_bytes = round_up(plan.arena_bytes, platform::page_bytes());
  plan.slack_bytes = plan.capacity_bytes - used;
  return plan;
}

Result<std::uint64_t> capacity_for_rows(const format::KvGeometry& geometry, std::uint64_t rows, std::uint64_t step_rows) {
  KV_ASSIGN(const std::vector<GroupPlan> groups, layouts(geometry));
  std::vector<std::uint64_t> blocks;
  for (const GroupPlan& g : groups) blocks.push_back(held(g, std::max<std::uint64_t>(rows, 1), step_rows));
  KV_ASSIGN(const StorePlan plan, plan_blocks(geometry, blocks));
  return plan.capacity_bytes;
}

}  // namespace kvasir::store
