// What the KV store costs: how many superpages a capacity holds, how each group slices one, and what is left over. The
// planner and the store itself call this; nothing else multiplies layers by heads.
// Thread rule: pure functions, any thread.
//
// Several groups share the superpages: which group has how many changes while it runs (cache/superpage_pool.hpp). One
// group alone has a single superpage with all of its blocks.
//
// Invariant: superpages * superpage_bytes = arena_bytes <= capacity_bytes. Of one group: blocks * block_bytes = arena_bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "format/block_layout.hpp"

namespace kvasir::store {

struct GroupPlan {
  format::BlockLayout layout;
  format::Reach reach;
  std::uint32_t blocks_per_superpage = 0;
  std::uint32_t blocks = 0;   // if it had every superpage: what block ids number
};

struct StorePlan {
  std::uint64_t capacity_bytes = 0;  // as asked for
  std::uint64_t superpage_bytes = 0;
  std::uint64_t superpages = 0;
  std::uint64_t arena_bytes = 0;     // what is mapped
  // Of the capacity: outside the arena, and with plan_blocks() what its blocks leave of superpages.
  std::uint64_t slack_bytes = 0;
  std::vector<GroupPlan> groups;
  // Bytes of a superpage that a group's slices leave.
  std::uint64_t tail_bytes(std::size_t group) const {
    return superpage_bytes - groups[group].blocks_per_superpage * groups[group].layout.block_bytes();
  }
  // Rows that one sequence alone could have whose steps add up to `step_rows` of them at a time (0: any number at once).
  // At most 2^31 - 1.
  std::uint64_t max_rows(std::uint64_t step_rows = 0) const;
};

// Cuts `capacity_bytes` for a geometry: whole pages only. minimum_rows: a sequence of that many rows must fit, however it is
// computed. Errors: does_not_fit with both numbers, bad_input from the geometry.
Result<StorePlan> plan_store(const format::KvGeometry& geometry, std::uint64_t capacity_bytes,
                             std::uint64_t minimum_rows = 1);

// The plan of the least capacity, in whole pages, that holds so many blocks of each group. blocks: [groups]. Errors:
// bad_input if a size overflows or a group has more blocks than can be numbered.
Result<StorePlan> plan_blocks(const format::KvGeometry& geometry, std::span<const std::uint64_t> blocks);

// The least capacity, in whole pages, whose plan holds one sequence of `rows` rows (of one row for 0), whose steps add up to
// `step_rows` of them at a time (0: any number at once). Errors: bad_input if it overflows.
Result<std::uint64_t> capacity_for_rows(const format::KvGeometry& geometry, std::uint64_t rows, std::uint64_t step_rows = 0);

}  // namespace kvasir::store
