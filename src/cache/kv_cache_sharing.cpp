// Sequences that begin with another's rows: further answers to a prompt, and forks.
#include <algorithm>

#include "base/check.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"

namespace kvasir::cache {

bool KvCache::can_share(SequenceId sequence, std::uint32_t rows) const {
  const Slot& slot = slots_[slot_of(sequence)];
  for (std::uint32_t g = 0; g < groups(); ++g)
    if (groups_[g].reach.first_key(rows) / groups_[g].block_tokens < slot.tables[g].dropped()) return false;
  return rows <= slot.committed;
}

SharedRows KvCache::sharing(SequenceId sequence, std::uint32_t rows) const {
  const Slot& slot = slots_[slot_of(sequence)];
  SharedRows out{.rows = rows};
  for (std::uint32_t g = 0; g < groups(); ++g) {
    const Group& group = groups_[g];
    if (group.reach.window == 0) continue;
    const BlockTable& table = slot.tables[g];
    const std::uint32_t first = group.reach.first_key(rows) / group.block_tokens, end = rows / group.block_tokens;
    const std::uint64_t claim = claim_for(slot, g, table.held_alone(first, end, group.pool));
    if (claim > slot.claimed[g]) out.claimed_by_other[g] = static_cast<std::uint32_t>(claim - slot.claimed[g]);
  }
  return out;
}

void KvCache::share_prefix(const BlockTable& from, Slot& slot, std::uint32_t group, std::uint32_t rows) {
  Group& g = groups_[group];
  BlockTable& table = slot.tables[group];
  table.share_front(from, rows, g.reach.first_key(rows) / g.block_tokens, g.pool);
  slot.claimed[group] = claim_for(slot, group);
  g.ledger.claim(slot.claimed[group]);
  const std::uint32_t partial = rows % g.block_tokens;
  if (partial == 0) return;
  take(slot, group, 1);
  table.append(partial, g.pool);
  ask_copy({group, from.ids()[rows / g.block_tokens - from.dropped()], table.ids().back()});
}

Result<SequenceId> KvCache::admit_sharing(SequenceId from, std::uint32_t rows, std::uint64_t prompt_tokens,
                                          std::uint64_t max_new_tokens) {
  KV_CHECK(rows > 0 && rows < prompt_tokens && can_share(from, rows), "committed rows of a prompt are shared");
  const std::uint64_t bound_rows = rows_bound(prompt_tokens, max_new_tokens);
  const FitVerdict verdict = budget().check({.rows = bound_rows, .prompt_tokens = prompt_tokens, .shared = sharing(from, rows)});
  if (!verdict.ok()) return to_error(verdict);
  const SequenceId id = open_slot(prompt_tokens, bound_rows);
  Slot& slot = slots_[slot_of(id)];
  slot.rows = slot.committed = rows;
  live_rows_ += rows;
  Slot& other = slots_[slot_of(from)];
  for (std::uint32_t g = 0; g < groups(); ++g) {
    share_prefix(other.tables[g], slot, g, rows);
    settle_claim(other, g);
  }
  return id;
}

Result<SequenceId> KvCache::fork(SequenceId sequence, std::uint64_t bound_rows) {
  Slot& parent = slots_[slot_of(sequence)];
  KV_CHECK(bound_rows >= parent.rows, "a fork has room for what it shares");
  if (bound_rows > max_sequence_rows_) return to_error({Fit::too_long, 0, bound_rows, max_sequence_rows_});
  if (free_slots_.size() == slots_for_forks_) return to_error({Fit::no_sequence_slot, 0, 1, 0});
  // With every block shared, each of the two may come to hold all of what it reaches alone.
  const SequenceId id = open_slot(parent.prompt, bound_rows);
  const std::array<bool, kMaxGroups> copies_before = parent.copy_claimed;
  Slot& child = slots_[slot_of(id)];
  child.rows = parent.rows;
  child.committed = parent.committed;
  live_rows_ += child.rows;
  std::array<std::uint64_t, kMaxGroups> wanted{};
  for (std::uint32_t g = 0; g < groups(); ++g) {
    Group& group = groups_[g];
    const bool partial = parent.rows % group.block_tokens != 0;
    child.copy_claimed[g] = partial && bound_rows > parent.rows;
    parent.copy_claimed[g] = parent.copy_claimed[g] || (partial && parent.bound > parent.rows);
    child.tables[g].share(parent.tables[g], group.pool);
    wanted[g] = claim_for(child, g) + claim_for(parent, g) - parent.claimed[g];
  }
  if (const FitVerdict verdict = budget().check_blocks(wanted); !verdict.ok()) {
    release(id);
    parent.copy_claimed = copies_before;
    return to_error(verdict);
  }
  for (std::uint32_t g = 0; g < groups(); ++g) {
    settle_claim(parent, g);
    settle_claim(child, g);
  }
  return id;
}

}  // namespace kvasir::cache
