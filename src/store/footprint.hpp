// What the KV store costs: how many blocks of each group a capacity holds, and what is left over. The planner and the
// store itself call this; nothing else multiplies layers by heads.
// Thread rule: pure functions, any thread.
//
// Invariant: sum over groups of blocks * block_bytes + slack_bytes = capacity_bytes, to the byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "format/block_layout.hpp"

namespace kvasir::store {

struct GroupPlan {
  format::BlockLayout layout;
  std::uint64_t first_superpage = 0;  // the group's superpages are consecutive
  std::uint64_t superpages = 0;
  std::uint32_t blocks_per_superpage = 0;
  std::uint32_t blocks = 0;
  std::uint64_t bytes() const { return std::uint64_t{blocks} * layout.block_bytes(); }
};

struct StorePlan {
  std::uint64_t capacity_bytes = 0;  // as asked for
  std::uint64_t superpage_bytes = 0;
  std::uint64_t arena_bytes = 0;  // superpages of all groups: what is mapped; <= capacity_bytes
  std::uint64_t slack_bytes = 0;  // odd bytes, tails of superpages, superpages that no group got
  std::vector<GroupPlan> groups;
  // Rows that one sequence alone could have: the tightest group decides.
  std::uint64_t max_rows() const;
};

// Cuts `capacity_bytes` for a geometry: whole pages only. Each superpage goes to the group that would run out first, so
// one sequence's bound is the longest possible. minimum_rows: a sequence of that many rows must fit.
// Errors: does_not_fit with both numbers, bad_input from the geometry.
Result<StorePlan> plan_store(const format::KvGeometry& geometry, std::uint64_t capacity_bytes,
                             std::uint64_t minimum_rows = 1);

// The plan with so many blocks of each group and the least capacity, in whole pages, that holds them. blocks: [groups].
// Errors: bad_input if a size overflows or a group has more blocks than can be numbered.
Result<StorePlan> plan_blocks(const format::KvGeometry& geometry, std::span<const std::uint64_t> blocks);

// The least capacity, in whole pages, whose plan holds one sequence of `rows` rows (of one row for 0). Errors:
// bad_input if it overflows.
Result<std::uint64_t> capacity_for_rows(const format::KvGeometry& geometry, std::uint64_t rows);

}  // namespace kvasir::store
