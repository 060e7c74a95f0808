#include "cache/kv_cache.hpp"

#include <fmt/format.h>

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
  }
  return ok_status();
}

}  // namespace

KvCache::Group::Group(const GroupConfig& config, std::uint32_t capacity, std::uint32_t max_sequences,
                      std::optional<std::uint64_t> allocation_order)
    : pool(config.blocks, allocation_order),
      ledger(config.reserved_blocks),
      block_tokens(config.block_tokens),
      table_capacity(capacity),
      // Not initialised: pages of long contexts that nobody uses cost nothing.
      table_storage(std::make_unique_for_overwrite<BlockId[]>(std::size_t{max_sequences} * capacity)) {}

Result<KvCache> KvCache::create(const KvCacheConfig& config) {
  KV_TRY(validate(config));
  return KvCache(config);
}

std::uint64_t KvCache::metadata_bytes(const KvCacheConfig& config) {
  const std::uint64_t groups = config.groups.size(), sequences = config.max_sequences;
  std::uint64_t sum =
      groups * sizeof(Group) + sequences * (sizeof(Slot) + sizeof(std::uint32_t) + groups * sizeof(CopyBlock));
  for (const GroupConfig& g : config.groups) {
    sum += pool_metadata_bytes(g.blocks, config.allocation_order.has_value());
    sum += table_metadata_bytes(config.max_sequences,
                                cache::table_capacity(config.max_sequence_rows, g.block_tokens, g.blocks));
  }
  return sum;
}

KvCache::KvCache(const KvCacheConfig& config)
    : slots_(config.max_sequences), max_sequence_rows_(config.max_sequence_rows) {
  groups_.reserve(config.groups.size());
  for (const GroupConfig& g : config.groups) {
    const std::uint32_t capacity = cache::table_capacity(config.max_sequence_rows, g.block_tokens, g.blocks);
    groups_.emplace_back(g, capacity, config.max_sequences, config.allocation_order);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const std::span storage(groups_.back().table_storage.get() + s * capacity, capacity);
      slots_[s].tables[groups_.size() - 1] = BlockTable(storage, g.block_tokens);
    }
  }
  free_slots_.reserve(slots_.size());
  for (std::uint32_t s = config.max_sequences; s-- > 0;) free_slots_.push_back(s);
  copies_.reserve(slots_.size() * groups_.size());
}

std::uint32_t KvCache::slot_of(SequenceId sequence) const {
  const auto slot = static_cast<std::uint32_t>(sequence.value);
  KV_CHECK(slot < slots_.size() && slots_[slot].used && make_id(slots_[slot].generation, slot) == sequence.value,
           "no such sequence: it was released, or never admitted");
  return slot;
}

AdmissionBudget KvCache::budget() const {
  AdmissionBudget budget(max_sequence_rows_, free_slots_.size());
  for (const Group& g : groups_)
    budget.add_group(g.block_tokens, g.ledger.usable(g.pool.counts()), g.ledger.claimable(g.pool.counts()));
  return budget;
}

FitVerdict KvCache::can_admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) const {
  return budget().check(rows_bound(prompt_tokens, max_new_tokens));
}

SequenceId KvCache::open_slot(std::uint64_t bound_rows) {
  const std::uint32_t s = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[s];
  slot.used = true;
  slot.bound = bound_rows;
  return SequenceId(make_id(slot.generation, s));
}

Result<SequenceId> KvCache::admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) {
  const std::uint64_t bound_rows = rows_bound(prompt_tokens, max_new_tokens);
  if (const FitVerdict verdict = budget().check(bound_rows); !verdict.ok()) return to_error(verdict);
  const SequenceId id = open_slot(bound_rows);
  Slot& slot = slots_[slot_of(id)];
  for (std::uint32_t g = 0; g < groups(); ++g) {
    slot.claimed[g] = blocks_for_rows(bound_rows, groups_[g].block_tokens);
    KV_CHECK(groups_[g].ledger.claim(slot.claimed[g], groups_[g].pool.counts()).ok(),
             "what the budget allows can be claimed");
  }
  return id;
}

void KvCache::convert(Slot& slot, std::uint32_t group, std::uint32_t blocks) {
  KV_CHECK(blocks <= slot.claimed[group], "a sequence takes no more than it claimed");
  slot.claimed[group] -= blocks;
  groups_[group].ledger.convert(blocks);
}

// Makes the last block writable: a copy if it is shared; else the claim for a copy, if there is one, is not needed.
void KvCache::settle_last_block(Slot& slot, std::uint32_t group) {
  Group& g = groups_[group];
  if (slot.tables[group].needs_copy(g.pool)) {
    KV_CHECK(slot.copy_claimed[group], "a shared last block has a claim for its copy");
    convert(slot, group, 1);
    const BlockTable::Replaced copy = slot.tables[group].replace_last(g.pool);
    KV_CHECK(copies_.size() < copies_.capacity(), "clear_copies() once a step");
    copies_.push_back({group, copy.from, copy.to});
  } else if (slot.copy_claimed[group]) {
    --slot.claimed[group];
    g.ledger.give_back(1);
  }
  slot.copy_claimed[group] = false;
}

void KvCache::reserve_rows(SequenceId sequence, std::uint32_t n) {
  Slot& slot = slots_[slot_of(sequence)];
  KV_CHECK(n <= slot.bound - slot.rows, "a sequence stays within its bound");
  if (n == 0) return;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    settle_last_block(slot, g);
    convert(slot, g, slot.tables[g].blocks_to_append(n));
    slot.tables[g].append(n, groups_[g].pool);
  }
  slot.rows += n;
  live_rows_ += n;
}

void KvCache::truncate(SequenceId sequence, std::uint32_t rows) {
  Slot& slot = slots_[slot_of(sequence)];
  KV_CHECK(rows <= slot.rows, "truncate() cannot lengthen");
  if (rows == slot.rows) return;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    Group& group = groups_[g];
    BlockTable& table = slot.tables[g];
    for (const BlockId block : table.ids().subspan(rows / group.block_tokens))
      KV_CHECK(group.pool.refs(block) == 1 && !group.pool.published(block), "truncate() cannot cut into shared blocks");
    const std::uint32_t before = table.blocks();
    table.truncate(rows, group.pool);
    const std::uint32_t freed = before - table.blocks();
    KV_CHECK(group.ledger.claim(freed, group.pool.counts()).ok(), "blocks that were just freed can be claimed");
    slot.claimed[g] += freed;
  }
  live_rows_ -= slot.rows - rows;
  slot.rows = rows;
}

Result<SequenceId> KvCache::fork(SequenceId sequence, std::uint64_t bound_rows) {
  Slot& parent = slots_[slot_of(sequence)];
  KV_CHECK(bound_rows >= parent.rows, "a fork has room for what it shares");
  if (bound_rows > max_sequence_rows_) return to_error({Fit::too_long, 0, bound_rows, max_sequence_rows_});
  if (free_slots_.empty()) return to_error({Fit::no_sequence_slot, 0, 1, 0});
  std::array<std::uint64_t, kMaxGroups> child_claim{};
  std::array<bool, kMaxGroups> child_copies{}, parent_copies{};  // who gets a new claim for a copy of the last block
  for (std::uint32_t g = 0; g < groups(); ++g) {
    const Group& group = groups_[g];
    const bool partial = parent.rows % group.block_tokens != 0;
    child_copies[g] = partial && bound_rows > parent.rows;
    parent_copies[g] = partial && parent.bound > parent.rows && !parent.copy_claimed[g];
    child_claim[g] =
        blocks_for_rows(bound_rows, group.block_tokens) - parent.tables[g].blocks() + (child_copies[g] ? 1 : 0);
    const std::uint64_t wanted = child_claim[g] + (parent_copies[g] ? 1 : 0);
    const std::uint64_t claimable = group.ledger.claimable(group.pool.counts());
    if (wanted > claimable) return to_error({Fit::exhausted, g, wanted, claimable});
  }
  const SequenceId id = open_slot(bound_rows);
  Slot& child = slots_[slot_of(id)];
  child.rows = parent.rows;
  live_rows_ += child.rows;
  for (std::uint32_t g = 0; g < groups(); ++g) {
    Group& group = groups_[g];
    const std::uint64_t parent_claim = parent_copies[g] ? 1 : 0;
    KV_CHECK(group.ledger.claim(child_claim[g] + parent_claim, group.pool.counts()).ok(), "checked above");
    child.claimed[g] = child_claim[g];
    child.copy_claimed[g] = child_copies[g];
    parent.claimed[g] += parent_claim;
    parent.copy_claimed[g] = parent.copy_claimed[g] || parent_copies[g];
    child.tables[g].share(parent.tables[g], group.pool);
  }
  return id;
}

void KvCache::release(SequenceId sequence) {
  const std::uint32_t s = slot_of(sequence);
  Slot& slot = slots_[s];
  for (std::uint32_t g = 0; g < groups(); ++g) {
    slot.tables[g].truncate(0, groups_[g].pool);
    groups_[g].ledger.give_back(slot.claimed[g]);
    slot.claimed[g] = 0;
    slot.copy_claimed[g] = false;
  }
  live_rows_ -= slot.rows;
  slot.rows = 0;
  slot.bound = 0;
  slot.used = false;
  ++slot.generation;
  free_slots_.push_back(s);
}

Status KvCache::quarantine(std::uint32_t group, BlockId block) {
  Group& g = groups_[group];
  KV_CHECK(g.pool.state(block) == BlockState::free, "only a free block is quarantined here");
  if (const std::uint64_t claimable = g.ledger.claimable(g.pool.counts()); claimable == 0)
    return to_error({Fit::exhausted, group, 1, 0});
  g.pool.quarantine(block);
  return ok_status();
}

void KvCache::unquarantine(std::uint32_t group, BlockId block) { groups_[group].pool.unquarantine(block); }

std::uint32_t KvCache::rows(SequenceId sequence) const { return slots_[slot_of(sequence)].rows; }
std::uint64_t KvCache::bound(SequenceId sequence) const { return slots_[slot_of(sequence)].bound; }

const BlockTable& KvCache::table(SequenceId sequence, std::uint32_t group) const {
  KV_CHECK(group < groups(), "no such cache group");
  return slots_[slot_of(sequence)].tables[group];
}

GroupStats KvCache::stats(std::uint32_t group) const {
  const Group& g = groups_[group];
  return {g.pool.counts(), g.ledger.claimed(), g.ledger.reserved(), g.block_tokens};
}

void KvCache::check_invariants() const {
  std::uint32_t used = 0;
  std::uint64_t rows = 0;
  for (const Slot& slot : slots_) {
    used += slot.used ? 1 : 0;
    rows += slot.rows;
  }
  KV_CHECK(rows == live_rows_, "live rows = sum of the sequences' rows");
  KV_CHECK(used == sequences(), "used slots + free slots = all slots");
  for (std::uint32_t g = 0; g < groups(); ++g) {
    const Group& group = groups_[g];
    std::vector<std::uint32_t> holders(group.pool.counts().total, 0);
    std::uint64_t claimed = 0;
    for (const Slot& slot : slots_) {
      const BlockTable& table = slot.tables[g];
      KV_CHECK(slot.used || (table.rows() == 0 && slot.claimed[g] == 0), "an unused slot holds nothing");
      KV_CHECK(table.rows() == slot.rows && slot.rows <= slot.bound, "groups agree on the rows, within the bound");
      table.check_invariants(group.pool);
      for (const BlockId block : table.ids()) ++holders[static_cast<std::uint32_t>(block)];
      claimed += slot.claimed[g];
      const std::uint64_t growth = blocks_for_rows(slot.bound, group.block_tokens) - table.blocks();
      KV_CHECK(slot.claimed[g] == growth + (slot.copy_claimed[g] ? 1 : 0), "a claim is what may still be taken");
      KV_CHECK(slot.copy_claimed[g] || slot.rows == slot.bound || !table.needs_copy(group.pool),
               "a shared last block that may be written has a claim for its copy");
    }
    for (std::uint32_t b = 0; b < holders.size(); ++b)
      KV_CHECK(holders[b] == group.pool.refs(static_cast<BlockId>(b)), "references = tables that list the block");
    KV_CHECK(claimed == group.ledger.claimed(), "claimed = sum of the sequences' claims");
    group.ledger.check_invariants(group.pool.counts());
    group.pool.check_invariants();
  }
}

}  // namespace kvasir::cache
