// What must hold of the cache's metadata, derived anew.
#include <vector>

#include "base/check.hpp"
#include "base/units.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"

namespace kvasir::cache {

void KvCache::check_invariants() const {
  std::uint32_t used = 0;
  std::uint64_t rows = 0;
  for (const Slot& slot : slots_) {
    used += slot.used ? 1 : 0;
    rows += slot.rows;
    KV_CHECK(slot.committed <= slot.rows && slot.rows <= slot.bound, "committed <= rows <= bound");
  }
  KV_CHECK(rows == live_rows_, "live rows = sum of the sequences' rows");
  KV_CHECK(used == sequences(), "used slots + free slots = all slots");
  KV_CHECK(slots_for_forks_ <= free_slots_.size(), "slots promised to forks are free");
  for (std::uint32_t g = 0; g < groups(); ++g) check_group(g);
  check_arena();
}

void KvCache::check_group(std::uint32_t g) const {
  const Group& group = groups_[g];
  std::vector<std::uint32_t> holders(group.pool.blocks_per_superpage() * (superpages_ && group.draws_superpages ? superpages_->total() : 1), 0);
  std::uint64_t claimed = 0;
  for (const Slot& slot : slots_) {
    const BlockTable& table = slot.tables[g];
    KV_CHECK(slot.used || (table.rows() == 0 && slot.claimed[g] == 0), "an unused slot holds nothing");
    KV_CHECK(table.rows() == slot.rows, "groups agree on the rows");
    KV_CHECK(table.dropped() <= group.reach.first_key(slot.committed) / group.block_tokens, "what is reached is held");
    KV_CHECK(table.dropped() == group.reach.first_key(slot.committed) / group.block_tokens || slot.committed == 0 || group.reach.window == 0,
             "what a window has passed is let go at once");
    table.check_invariants(group.pool);
    for (const BlockId block : table.ids()) ++holders[static_cast<std::uint32_t>(block)];
    claimed += slot.claimed[g];
    // Another holder's release may leave a sequence with more blocks of its own than its claim assumed: never with fewer.
    const std::uint64_t needed = slot.used ? claim_for(slot, g) : 0;
    KV_CHECK(slot.claimed[g] >= needed, "a claim is what may still be taken");
    KV_CHECK(slot.keeps_claims || slot.claimed[g] <= (group.reach.window == 0 ? needed : growth(slot, g)), "and no more");
    KV_CHECK(slot.copy_claimed[g] || slot.rows == slot.bound || !table.needs_copy(group.pool),
             "a shared last block that may be written has a claim for its copy");
  }
  for (std::uint32_t b = 0; b < holders.size(); ++b)
    KV_CHECK(holders[b] == group.pool.refs(static_cast<BlockId>(b)), "references = tables that list the block");
  KV_CHECK(claimed + held_for_forks_[g] == group.ledger.claimed(), "claimed = sum of the sequences' claims + what is held for forks");
  group.pool.check_invariants();
}

void KvCache::check_arena() const {
  std::uint64_t needed = 0;
  for (const Group& group : groups_) {
    const PoolCounts& pool = group.pool.counts();
    const std::uint64_t claimed = group.ledger.claimed();
    const std::uint64_t deficit = claimed > pool.available() ? claimed - pool.available() : 0;
    KV_CHECK(group.draws_superpages || deficit == 0, "claims <= free + cached - pinned");
    if (group.draws_superpages) needed += ceil_div(deficit, group.pool.blocks_per_superpage());
  }
  KV_CHECK(needed <= free_superpages(), "what groups' claims lack, free superpages have");
  for (std::uint32_t s = 0; superpages_ && s < superpages_->total(); ++s) {
    std::uint32_t owners = superpages_->is_free(s) ? 1 : 0;
    for (const Group& group : groups_) owners += group.draws_superpages && group.pool.has_superpage(s) ? 1 : 0;
    KV_CHECK(owners == 1, "a superpage is free or one group's");
  }
}

}  // namespace kvasir::cache
