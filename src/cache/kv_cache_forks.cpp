// Sequences that fork from each other as beams do: what they need together is promised once, and stays theirs however they
// continue each other.
//
//   blocks in use of the family + its sequences' claims + its reserve = what it was promised
//
// So what one of them does not need any more (a copy, a block that its window has passed) stays in its claim until the next
// fork_among(), which puts it into the reserve.
#include <algorithm>

#include "base/check.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"

namespace kvasir::cache {

void KvCache::reserve_blocks(ForkReserve& reserve, std::uint32_t group, std::uint64_t blocks) {
  Group& g = groups_[group];
  if (blocks > reserve.blocks[group]) g.ledger.claim(blocks - reserve.blocks[group]);
  else g.ledger.give_back(reserve.blocks[group] - blocks);
  held_for_forks_[group] = held_for_forks_[group] - reserve.blocks[group] + blocks;
  reserve.blocks[group] = blocks;
}

Result<SequenceId> KvCache::admit_forking(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens, std::uint32_t sequences,
                                          ForkReserve& reserve) {
  const Demand demand{.rows = rows_bound(prompt_tokens, max_new_tokens), .prompt_tokens = prompt_tokens, .sequences = sequences};
  const AdmissionBudget now = budget();
  if (const FitVerdict verdict = now.check(demand); !verdict.ok()) return to_error(verdict);
  KV_ASSIGN(const SequenceId first, admit(prompt_tokens, max_new_tokens));
  slots_[slot_of(first)].keeps_claims = true;
  for (std::uint32_t g = 0; g < groups(); ++g) reserve_blocks(reserve, g, now.groups()[g].wanted_by_forks(demand));
  reserve.slots = sequences - 1;
  slots_for_forks_ += reserve.slots;
  return first;
}

void KvCache::fork_among(std::span<SequenceId> members, std::span<const std::uint32_t> parents, ForkReserve& reserve) {
  KV_CHECK(members.size() == parents.size(), "every member goes on from one");
  std::array<std::uint64_t, kMaxGroups> ours{};   // in use and promised before
  for (std::uint32_t g = 0; g < groups(); ++g) {
    ours[g] = groups_[g].pool.counts().active + groups_[g].ledger.claimed();
    reserve_blocks(reserve, g, 0);
    for (const SequenceId member : members)
      if (member.valid()) give_back_claim(slots_[slot_of(member)], g);
  }
  slots_for_forks_ -= reserve.slots;
  reserve.slots = 0;
  for (std::uint32_t m = 0; m < members.size(); ++m)
    if (members[m].valid() && std::ranges::find(parents, m) == parents.end()) release(members[m]);
  fork_scratch_.assign(members.size(), SequenceId());
  for (std::uint32_t m = 0; m < members.size(); ++m) {
    const auto first = static_cast<std::uint32_t>(std::ranges::find(parents, parents[m]) - parents.begin());
    const SequenceId parent = members[parents[m]];
    if (first == m) fork_scratch_[m] = parent;   // the first of its children takes it over
    else fork_scratch_[m] = fork(parent, bound(parent)).value();
  }
  std::ranges::copy(fork_scratch_, members.begin());
  for (const SequenceId member : members) slots_[slot_of(member)].keeps_claims = true;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    const std::uint64_t now = groups_[g].pool.counts().active + groups_[g].ledger.claimed();
    KV_CHECK(now <= ours[g], "forks among a family stay within what it was promised");
    reserve_blocks(reserve, g, ours[g] - now);
  }
}

void KvCache::give_back(ForkReserve& reserve) {
  for (std::uint32_t g = 0; g < groups(); ++g) reserve_blocks(reserve, g, 0);
  slots_for_forks_ -= reserve.slots;
  reserve.slots = 0;
}

}  // namespace kvasir::cache
