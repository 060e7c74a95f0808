// The cache's metadata for all groups at once: pools, claims and the block tables of running sequences.
// Thread rule: one owner (the step loop). Allocates at creation only.
//
// Who holds what:
//   claim    admit() promises the sequence's bound in every group; reserve_rows() turns promises into blocks;
//            release() gives back what was not used
//   blocks   held by tables (one reference each); shared only by fork()
//   copies   a shared last block is replaced on the next reserve_rows(); the caller copies the bytes, see copies()
//
// Invariants, per group: active + cached + free + quarantined = total; claimed <= free + cached - pinned;
// claimed = sum of the sequences' own claims; refs of a block = number of tables that list it. And over all:
// live_rows = sum of the sequences' rows, those that forks share counted for each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cache/block_pool.hpp"
#include "cache/block_table.hpp"
#include "cache/claims.hpp"

namespace kvasir::cache {

struct GroupConfig {
  std::uint32_t block_tokens = 32;
  std::uint32_t blocks = 0;           // what the store has room for
  std::uint32_t reserved_blocks = 0;  // of them, kept out of every claim
};

struct KvCacheConfig {
  std::vector<GroupConfig> groups;
  std::uint32_t max_sequences = 0;                // sequences that hold blocks at one time
  std::uint64_t max_sequence_rows = 0;            // the context limit, in rows
  std::optional<std::uint64_t> allocation_order;  // seed: shuffles the physical order of blocks (BlockPool)
};

struct GroupStats {
  PoolCounts pool;
  std::uint64_t claimed = 0;
  std::uint32_t reserved = 0;
  std::uint32_t block_tokens = 0;
};

// Bytes to copy, block `from` to block `to` of a group, before the step that follows writes.
struct CopyBlock {
  std::uint32_t group = 0;
  BlockId from = kNoBlock, to = kNoBlock;
};

class KvCache {
 public:
  // Errors: bad_input for no group, more than kMaxGroups, a zero size, or all blocks reserved.
  static Result<KvCache> create(const KvCacheConfig& config);
  // Heap bytes that create() takes for this configuration, all of them. REQUIRES: create() would accept it.
  static std::uint64_t metadata_bytes(const KvCacheConfig& config);

  // The admission rule: the bound is rows_bound(prompt, max_new) rows in every group. A plain value, no allocation.
  FitVerdict can_admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) const;
  // Claims the bound in all groups at once. Errors: does_not_fit (never will) or exhausted (not now), with both
  // numbers; nothing has changed then.
  Result<SequenceId> admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens);

  // Room for n more rows, from the claim: always succeeds within the bound. REQUIRES: rows + n <= bound.
  // If the last block was shared, copies() grows by one entry a group.
  void reserve_rows(SequenceId sequence, std::uint32_t n);
  // Drops the rows after the first `rows`; their blocks go back to the claim (speculation, an abandoned step).
  // REQUIRES: rows <= rows(sequence), and no block that loses a row is shared.
  void truncate(SequenceId sequence, std::uint32_t rows);
  // A second sequence that starts with all rows of the first, sharing its blocks, and may grow to `bound_rows`.
  // Claims what it may still take: everything past the full shared blocks; and for the first one a copy of the last
  // block, if that is partial. Errors as admit(); nothing has changed then. REQUIRES: bound_rows >= rows(sequence).
  Result<SequenceId> fork(SequenceId sequence, std::uint64_t bound_rows);
  // Frees the sequence's blocks and claims, at any moment of its life. The id is dead afterwards.
  void release(SequenceId sequence);

  // Copies asked for since clear_copies(), in order.
  std::span<const CopyBlock> copies() const { return copies_; }
  void clear_copies() { copies_.clear(); }

  // Takes a free block out of use. Errors: exhausted if claims need it (nothing has changed).
  // REQUIRES: the block is free.
  Status quarantine(std::uint32_t group, BlockId block);
  void unquarantine(std::uint32_t group, BlockId block);

  std::uint32_t groups() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint32_t rows(SequenceId sequence) const;
  std::uint64_t bound(SequenceId sequence) const;
  const BlockTable& table(SequenceId sequence, std::uint32_t group) const;
  std::uint32_t table_capacity(std::uint32_t group) const { return groups_[group].table_capacity; }
  std::uint32_t max_sequences() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint64_t max_sequence_rows() const { return max_sequence_rows_; }
  std::uint64_t live_rows() const { return live_rows_; }
  std::uint32_t sequences() const { return max_sequences() - static_cast<std::uint32_t>(free_slots_.size()); }
  GroupStats stats(std::uint32_t group) const;
  AdmissionBudget budget() const;

  // Re-derives every counter from pools and tables; aborts on a difference. Allocates.
  void check_invariants() const;

 private:
  struct Group {
    Group(const GroupConfig& config, std::uint32_t capacity, std::uint32_t max_sequences,
          std::optional<std::uint64_t> allocation_order);
    BlockPool pool;
    ClaimLedger ledger;
    std::uint32_t block_tokens;
    std::uint32_t table_capacity;
    std::unique_ptr<BlockId[]> table_storage;  // [max_sequences][table_capacity]
  };
  struct Slot {
    std::uint32_t generation = 0;
    bool used = false;
    std::uint32_t rows = 0;
    std::uint64_t bound = 0;
    std::array<BlockTable, kMaxGroups> tables{};
    std::array<std::uint64_t, kMaxGroups> claimed{};
    std::array<bool, kMaxGroups> copy_claimed{};  // one of `claimed` is for a copy of the last block
  };

  explicit KvCache(const KvCacheConfig& config);
  std::uint32_t slot_of(SequenceId sequence) const;
  SequenceId open_slot(std::uint64_t bound_rows);
  void convert(Slot& slot, std::uint32_t group, std::uint32_t blocks);
  void settle_last_block(Slot& slot, std::uint32_t group);

  std::vector<Group> groups_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  // a stack
  std::vector<CopyBlock> copies_;
  std::uint64_t max_sequence_rows_ = 0;
  std::uint64_t live_rows_ = 0;
};

}  // namespace kvasir::cache
