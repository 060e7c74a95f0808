// How groups share the arena: superpages that are empty go back, and blocks move to empty one.
#include <algorithm>

#include "base/check.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"

namespace kvasir::cache {

void KvCache::give_back_superpages(Group& group) {
  if (!group.draws_superpages) return;
  while (const std::optional<std::uint32_t> empty = group.pool.empty_superpage()) {
    group.pool.remove_superpage(*empty);
    superpages_->give_back(*empty);
  }
}

// The block's content goes to another place, outside the superpage; every table that lists it follows.
void KvCache::move_block(std::uint32_t group, BlockId from, std::uint32_t out_of) {
  Group& g = groups_[group];
  const std::uint32_t holders = g.pool.refs(from);
  const BlockId to = g.pool.allocate_outside(out_of);
  std::uint32_t found = 0;
  for (Slot& slot : slots_) found += slot.used && slot.tables[group].replace(from, to) ? 1 : 0;
  KV_CHECK(found == holders, "tables hold every reference");
  for (std::uint32_t i = 1; i < holders; ++i) g.pool.add_ref(to);
  for (std::uint32_t i = 0; i < holders; ++i) g.pool.release(from);
  ask_copy({group, from, to});
  ++g.moved;
}

// Empties the superpage that takes the fewest moves, or begins to: where blocks move to is never the emptiest, so the next
// step goes on with the same one. A group gives one up only if so many of its blocks are free that neither claims nor
// `wanted` need them: else it would have to draw another. False if there is none whose blocks have other places.
bool KvCache::empty_one_superpage(std::span<const std::uint64_t> wanted) {
  const AdmissionBudget now = budget();
  std::optional<std::uint32_t> group, superpage;
  std::uint32_t fewest = 0;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    const BlockPool& pool = groups_[g].pool;
    const GroupBudget& has = now.groups()[g];
    if (!groups_[g].draws_superpages || has.available < has.promised + wanted[g] + pool.blocks_per_superpage()) continue;
    const std::optional<std::uint32_t> emptiest = pool.emptiest_superpage();
    if (!emptiest) continue;
    const std::uint32_t used = pool.blocks_per_superpage() - pool.free_in(*emptiest);
    if (pool.counts().free - pool.free_in(*emptiest) < used) continue;
    if (!group || used < fewest) fewest = used, group = g, superpage = *emptiest;
  }
  if (!group) return false;
  Group& g = groups_[*group];
  const std::uint32_t first = *superpage * g.pool.blocks_per_superpage();
  for (std::uint32_t i = 0; i < g.pool.blocks_per_superpage() && moves_left() > 0; ++i) {
    const auto block = static_cast<BlockId>(first + i);
    if (g.pool.state(block) == BlockState::active) move_block(*group, block, *superpage);
  }
  give_back_superpages(g);
  return true;
}

void KvCache::compact(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) {
  if (!superpages_) return;
  const std::uint64_t rows = rows_bound(prompt_tokens, max_new_tokens);
  AdmissionBudget now = budget();
  const FitVerdict verdict = now.check({.rows = rows, .prompt_tokens = prompt_tokens});
  if (verdict.fit != Fit::exhausted) return;
  std::array<std::uint64_t, kMaxGroups> wanted{};
  for (std::uint32_t g = 0; g < groups(); ++g) wanted[g] = now.groups()[g].wanted(rows, prompt_tokens);
  if (!now.fits_compacted(wanted)) return;
  while (moves_left() > 0 && !budget().check_blocks(wanted).ok() && empty_one_superpage(wanted)) {
  }
}

}  // namespace kvasir::cache
