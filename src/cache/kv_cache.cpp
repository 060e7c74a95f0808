#include "cache/kv_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "cache/footprint.hpp"

namespace kvasir::cache {
namespace {

// Rows are uint32 within a sequence, and a page table's row counts are int32.
constexpr std::uint64_t kMaxSequenceRows = std::numeric_limits<std::int32_t>::max();

constexpr std::uint64_t make_id(std::uint32_t generation, std::uint32_t slot) {
  return (std::uint64_t{generation} << 32) | slot;
}

Error bad(std::string message) { return {ErrorCode::bad_input, std::move(message)}; }

bool draws(const GroupConfig& group) { return group.blocks_per_superpage > 0; }
std::uint32_t superpages_of(const GroupConfig& group) {
  return draws(group) ? group.blocks / group.blocks_per_superpage : 1;
}

// Of the arena that groups draw from: 0 where none does. All of them agree (validate).
std::uint32_t arena_superpages(const KvCacheConfig& config) {
  const auto first = std::ranges::find_if(config.groups, draws);
  return first == config.groups.end() ? 0 : superpages_of(*first);
}

std::uint32_t capacity_of(const KvCacheConfig& config, const GroupConfig& group) {
  const std::uint64_t step = rows_of_step(config.max_sequence_rows, config.max_step_rows);
  return table_capacity(config.max_sequence_rows, group.reach, step, group.block_tokens, group.blocks);
}

// Copies that one step may ask for: one a sequence and group for shared last blocks, and those that empty superpages.
std::uint64_t copies_a_step(const KvCacheConfig& config) {
  return std::uint64_t{config.max_sequences} * config.groups.size() + (arena_superpages(config) > 0 ? kMovesPerStep : 0);
}

Status validate_superpages(const KvCacheConfig& config, std::size_t g) {
  const GroupConfig& group = config.groups[g];
  if (!draws(group)) return ok_status();
  if (group.blocks % group.blocks_per_superpage != 0)
    return bad(fmt::format("group {}: blocks = {}; a multiple of blocks_per_superpage = {} is needed", g, group.blocks,
                           group.blocks_per_superpage));
  if (superpages_of(group) != arena_superpages(config))
    return bad(fmt::format("group {}: {} superpages; the arena that groups share has {}", g, superpages_of(group),
                           arena_superpages(config)));
  return ok_status();
}

Status validate(const KvCacheConfig& config) {
  if (config.groups.empty() || config.groups.size() > kMaxGroups)
    return bad(fmt::format("{} cache groups; valid are 1 to {}", config.groups.size(), kMaxGroups));
  if (config.max_sequences == 0) return bad("max_sequences = 0; at least 1 is needed");
  if (config.max_sequence_rows == 0 || config.max_sequence_rows > kMaxSequenceRows)
    return bad(fmt::format("max_sequence_rows = {}; valid are 1 to {}", config.max_sequence_rows, kMaxSequenceRows));
  for (std::size_t g = 0; g < config.groups.size(); ++g) {
    const GroupConfig& group = config.groups[g];
    if (group.block_tokens == 0) return bad(fmt::format("group {}: block_tokens = 0; at least 1 is needed", g));
    if (group.blocks == 0 || group.blocks > kMaxSequenceRows)
      return bad(fmt::format("group {}: blocks = {}; valid are 1 to {}", g, group.blocks, kMaxSequenceRows));
    if (group.reserved_blocks >= group.blocks)
      return bad(fmt::format("group {}: {} of {} blocks are reserved; one at least must be left", g,
                             group.reserved_blocks, group.blocks));
    KV_TRY(validate_superpages(config, g));
  }
  return ok_status();
}

}  // namespace

KvCache::Group::Group(const GroupConfig& config, std::uint32_t capacity, std::uint32_t max_sequences,
                      std::optional<std::uint64_t> allocation_order)
    : pool(draws(config) ? BlockPool(superpages_of(config), config.blocks_per_superpage, allocation_order)
                         : BlockPool(config.blocks, allocation_order)),
      ledger(config.reserved_blocks),
      block_tokens(config.block_tokens),
      reach(config.reach),
      draws_superpages(draws(config)),
      table_capacity(capacity),
      // Not initialised: pages of long contexts that nobody uses cost nothing.
      table_storage(std::make_unique_for_overwrite<BlockId[]>(std::size_t{max_sequences} * capacity)) {}

Result<KvCache> KvCache::create(const KvCacheConfig& config) {
  KV_TRY(validate(config));
  return KvCache(config);
}

std::uint64_t KvCache::metadata_bytes(const KvCacheConfig& config) {
  std::uint64_t sum = config.groups.size() * sizeof(Group) + copies_a_step(config) * sizeof(CopyBlock) +
                      config.max_sequences * (sizeof(Slot) + sizeof(std::uint32_t) + sizeof(SequenceId));
  if (const std::uint32_t superpages = arena_superpages(config); superpages > 0) sum += superpage_metadata_bytes(superpages);
  for (const GroupConfig& g : config.groups) {
    const std::uint32_t superpages = superpages_of(g);
    sum += pool_metadata_bytes(superpages, g.blocks / superpages, config.allocation_order.has_value());
    sum += table_metadata_bytes(config.max_sequences, capacity_of(config, g));
  }
  return sum;
}

KvCache::KvCache(const KvCacheConfig& config)
    : slots_(config.max_sequences), max_sequence_rows_(config.max_sequence_rows), max_step_rows_(config.max_step_rows) {
  if (const std::uint32_t superpages = arena_superpages(config); superpages > 0) superpages_.emplace(superpages);
  groups_.reserve(config.groups.size());
  for (const GroupConfig& g : config.groups) {
    const std::uint32_t capacity = capacity_of(config, g);
    groups_.emplace_back(g, capacity, config.max_sequences, config.allocation_order);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const std::span storage(groups_.back().table_storage.get() + s * capacity, capacity);
      slots_[s].tables[groups_.size() - 1] = BlockTable(storage, g.block_tokens);
    }
  }
  free_slots_.reserve(slots_.size());
  for (std::uint32_t s = config.max_sequences; s-- > 0;) free_slots_.push_back(s);
  copies_.reserve(copies_a_step(config));
  fork_scratch_.reserve(slots_.size());
}

std::uint32_t KvCache::slot_of(SequenceId sequence) const {
  const auto slot = static_cast<std::uint32_t>(sequence.value);
  KV_CHECK(slot < slots_.size() && slots_[slot].used && make_id(slots_[slot].generation, slot) == sequence.value,
           "no such sequence: it was released, or never admitted");
  return slot;
}

AdmissionBudget KvCache::budget() const {
  AdmissionBudget budget(max_sequence_rows_, free_slots_.size() - slots_for_forks_, free_superpages(), superpages_ ? superpages_->total() : 0);
  for (const Group& g : groups_) {
    const PoolCounts& pool = g.pool.counts();
    const std::uint32_t per_superpage = g.draws_superpages ? g.pool.blocks_per_superpage() : 0;
    budget.add_group({.block_tokens = g.block_tokens,
                      .reach = g.reach,
                      .max_step_rows = max_step_rows_,
                      .available = pool.available(),
                      .promised = g.ledger.claimed() + g.ledger.reserved(),
                      .unusable = std::uint64_t{g.ledger.reserved()} + pool.quarantined,
                      .occupied = std::uint64_t{pool.active} + pool.quarantined + pool.pinned,
                      .total = g.draws_superpages ? std::uint64_t{superpages_->total()} * per_superpage : pool.total,
                      .blocks_per_superpage = per_superpage});
  }
  return budget;
}

FitVerdict KvCache::can_admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) const {
  return budget().check({.rows = rows_bound(prompt_tokens, max_new_tokens), .prompt_tokens = prompt_tokens});
}

SequenceId KvCache::open_slot(std::uint64_t prompt, std::uint64_t bound_rows) {
  const std::uint32_t s = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[s];
  slot.used = true;
  slot.prompt = prompt;
  slot.bound = bound_rows;
  return SequenceId(make_id(slot.generation, s));
}

Result<SequenceId> KvCache::admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) {
  const std::uint64_t bound_rows = rows_bound(prompt_tokens, max_new_tokens);
  const AdmissionBudget now = budget();
  const FitVerdict verdict = now.check({.rows = bound_rows, .prompt_tokens = prompt_tokens});
  if (!verdict.ok()) return to_error(verdict);
  const SequenceId id = open_slot(prompt_tokens, bound_rows);
  Slot& slot = slots_[slot_of(id)];
  for (std::uint32_t g = 0; g < groups(); ++g) {
    slot.claimed[g] = claim_for(slot, g);
    KV_CHECK(slot.claimed[g] == now.groups()[g].wanted(bound_rows, prompt_tokens), "the budget counts what is claimed");
    groups_[g].ledger.claim(slot.claimed[g]);
  }
  return id;
}

// Rows that the next step may add to it: the rest of its prompt, as many as a step takes, then one.
std::uint64_t KvCache::step_rows(const Slot& slot) const {
  return rows_of_step(slot.prompt > slot.committed ? slot.prompt - slot.committed : 0, max_step_rows_);
}

std::uint64_t KvCache::most_held(const Slot& slot, std::uint32_t group) const {
  return blocks_held(slot.bound, groups_[group].reach, step_rows(slot), groups_[group].block_tokens);
}

// Blocks that it may still take over all of its life.
std::uint64_t KvCache::growth(const Slot& slot, std::uint32_t group) const {
  const BlockTable& table = slot.tables[group];
  return blocks_for_rows(slot.bound, groups_[group].block_tokens) - table.dropped() - table.blocks() +
         (slot.copy_claimed[group] ? 1 : 0);
}

// Blocks that it may take before it lets any go. Those it holds alone come back when its window has passed them; those it
// shares may not. no_longer_alone: as if it shared so many of the former.
std::uint64_t KvCache::claim_for(const Slot& slot, std::uint32_t group, std::uint64_t no_longer_alone) const {
  const Group& g = groups_[group];
  const std::uint64_t all = growth(slot, group);
  if (g.reach.window == 0) return all;
  const BlockTable& table = slot.tables[group];
  const std::uint64_t alone = table.held_alone(table.dropped(), table.dropped() + table.blocks(), g.pool) - no_longer_alone;
  const std::uint64_t most = most_held(slot, group);
  return std::min(all, most > alone ? most - alone : 0);
}

// To what it may still take. freed: blocks of its own that are free now.
void KvCache::settle_claim(Slot& slot, std::uint32_t group, std::uint64_t freed) {
  const std::uint64_t needed = claim_for(slot, group);
  const std::uint64_t claim = slot.keeps_claims ? std::max(slot.claimed[group] + freed, needed) : needed;
  if (claim > slot.claimed[group]) groups_[group].ledger.claim(claim - slot.claimed[group]);
  if (claim < slot.claimed[group]) groups_[group].ledger.give_back(slot.claimed[group] - claim);
  slot.claimed[group] = claim;
}

void KvCache::give_back_claim(Slot& slot, std::uint32_t group) {
  slot.keeps_claims = false;
  settle_claim(slot, group);
}

// Claimed blocks become blocks that the pool has free.
void KvCache::take(Slot& slot, std::uint32_t group, std::uint32_t blocks) {
  Group& g = groups_[group];
  KV_CHECK(blocks <= slot.claimed[group], "a sequence takes no more than it claimed");
  slot.claimed[group] -= blocks;
  g.ledger.convert(blocks);
  while (g.draws_superpages && g.pool.counts().free < blocks) g.pool.add_superpage(superpages_->take());
}

void KvCache::ask_copy(const CopyBlock& copy) {
  KV_CHECK(copies_.size() < copies_.capacity(), "clear_copies() once a step");
  copies_.push_back(copy);
}

// Makes the last block writable: a copy if it is shared; else the claim for a copy, if there is one, is not needed.
void KvCache::settle_last_block(Slot& slot, std::uint32_t group) {
  Group& g = groups_[group];
  const bool copied = slot.tables[group].needs_copy(g.pool);
  if (copied) {
    KV_CHECK(slot.copy_claimed[group], "a shared last block has a claim for its copy");
    take(slot, group, 1);
    const BlockTable::Replaced copy = slot.tables[group].replace_last(g.pool);
    ask_copy({group, copy.from, copy.to});
  }
  const bool unused = slot.copy_claimed[group] && !copied;
  slot.copy_claimed[group] = false;
  if (unused) settle_claim(slot, group);
}

void KvCache::reserve_rows(SequenceId sequence, std::uint32_t n) {
  Slot& slot = slots_[slot_of(sequence)];
  KV_CHECK(n <= slot.bound - slot.rows, "a sequence stays within its bound");
  if (n == 0) return;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    KV_CHECK(groups_[g].reach.window == 0 || slot.rows + n - slot.committed <= step_rows(slot),
             "a step adds no more rows beside a window than were claimed");
    settle_last_block(slot, g);
    take(slot, g, slot.tables[g].blocks_to_append(n));
    slot.tables[g].append(n, groups_[g].pool);
  }
  slot.rows += n;
  live_rows_ += n;
}

void KvCache::commit(SequenceId sequence) {
  Slot& slot = slots_[slot_of(sequence)];
  slot.committed = slot.rows;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    Group& group = groups_[g];
    if (group.reach.window == 0) continue;
    const std::uint32_t reached = group.reach.first_key(slot.rows) / group.block_tokens, active = group.pool.counts().active;
    group.left_behind += slot.tables[g].drop_before(reached, group.pool);
    settle_claim(slot, g, active - group.pool.counts().active);
    give_back_superpages(group);
  }
}

void KvCache::truncate(SequenceId sequence, std::uint32_t rows) {
  Slot& slot = slots_[slot_of(sequence)];
  KV_CHECK(rows <= slot.rows, "truncate() cannot lengthen");
  if (rows == slot.rows) return;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    Group& group = groups_[g];
    BlockTable& table = slot.tables[g];
    KV_CHECK(group.reach.window == 0 || rows >= slot.committed, "what a window has passed does not come back");
    for (const BlockId block : table.ids().subspan(rows / group.block_tokens - table.dropped()))
      KV_CHECK(group.pool.held_alone(block), "truncate() cannot cut into shared blocks");
    const std::uint32_t active = group.pool.counts().active;
    table.truncate(rows, group.pool);
    settle_claim(slot, g, active - group.pool.counts().active);
    give_back_superpages(group);
  }
  live_rows_ -= slot.rows - rows;
  slot.rows = rows;
  slot.committed = std::min(slot.committed, rows);
}

void KvCache::release(SequenceId sequence) {
  const std::uint32_t s = slot_of(sequence);
  Slot& slot = slots_[s];
  for (std::uint32_t g = 0; g < groups(); ++g) {
    slot.tables[g].clear(groups_[g].pool);
    groups_[g].ledger.give_back(slot.claimed[g]);
    slot.claimed[g] = 0;
    slot.copy_claimed[g] = false;
    give_back_superpages(groups_[g]);
  }
  live_rows_ -= slot.rows;
  slot.rows = slot.committed = 0;
  slot.prompt = slot.bound = 0;
  slot.used = slot.keeps_claims = false;
  ++slot.generation;
  free_slots_.push_back(s);
}

Status KvCache::quarantine(std::uint32_t group, BlockId block) {
  Group& g = groups_[group];
  KV_CHECK(g.pool.state(block) == BlockState::free, "only a free block is quarantined here");
  std::array<std::uint64_t, kMaxGroups> wanted{};
  wanted[group] = 1;
  if (const FitVerdict verdict = budget().check_blocks(wanted); !verdict.ok()) return to_error(verdict);
  g.pool.quarantine(block);
  return ok_status();
}

void KvCache::unquarantine(std::uint32_t group, BlockId block) {
  groups_[group].pool.unquarantine(block);
  give_back_superpages(groups_[group]);
}

std::uint32_t KvCache::rows(SequenceId sequence) const { return slots_[slot_of(sequence)].rows; }
std::uint64_t KvCache::bound(SequenceId sequence) const { return slots_[slot_of(sequence)].bound; }

const BlockTable& KvCache::table(SequenceId sequence, std::uint32_t group) const {
  KV_CHECK(group < groups(), "no such cache group");
  return slots_[slot_of(sequence)].tables[group];
}

GroupStats KvCache::stats(std::uint32_t group) const {
  const Group& g = groups_[group];
  return {.pool = g.pool.counts(),
          .claimed = g.ledger.claimed(),
          .reserved = g.ledger.reserved(),
          .block_tokens = g.block_tokens,
          .superpages = g.pool.superpages(),
          .left_behind = g.left_behind,
          .moved = g.moved};
}

}  // namespace kvasir::cache
