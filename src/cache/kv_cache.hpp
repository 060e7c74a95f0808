// The cache's metadata for all groups at once: pools, claims and the block tables of running sequences.
// Thread rule: one owner (the step loop). Allocates at creation only.
//
// Who holds what:
//   claim    admit() promises the most that the sequence may hold in every group; reserve_rows() turns promises into blocks;
//            commit() and release() give back what was not needed
//   blocks   held by tables (one reference each); shared by admit_sharing() and fork(); in a group with a window commit() lets go those
//            that no later row reaches
//   superpages  of an arena that several groups share: taken when a group has no free block, given back when empty
//   copies   a shared last block is replaced on the next reserve_rows(), and compact() moves blocks; the caller copies the
//            bytes, see copies()
//
// Invariants, per group: active + cached + free + quarantined = total; the claims' (cache/claims.hpp); claimed = sum of the
// sequences' own claims; refs of a block = number of tables that list it. Over all: live_rows = sum of the sequences' rows,
// those that forks share counted for each; a superpage is free or one group's.
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
#include "cache/superpage_pool.hpp"
#include "format/reach.hpp"

namespace kvasir::cache {

struct GroupConfig {
  std::uint32_t block_tokens = 32;
  std::uint32_t blocks = 0;           // what the store has room for: of the group's own, or if it had every superpage
  std::uint32_t reserved_blocks = 0;  // of them, kept out of every claim
  format::Reach reach = {};           // rows that no later row reaches are let go
  // 0: the blocks are the group's own. Else it draws superpages of so many blocks from the arena, as the other groups that
  // do; blocks is a multiple, and they agree on the number of superpages.
  std::uint32_t blocks_per_superpage = 0;
};

// Blocks that compact() moves in one step, at most: what holds up a step is bounded.
inline constexpr std::uint32_t kMovesPerStep = 64;

struct KvCacheConfig {
  std::vector<GroupConfig> groups;
  std::uint32_t max_sequences = 0;                // sequences that hold blocks at one time
  std::uint64_t max_sequence_rows = 0;            // the context limit, in rows
  std::optional<std::uint64_t> allocation_order;  // seed: shuffles the physical order of blocks (BlockPool)
  // Rows that a step adds to one sequence at most, 0: no limit. Less of a long prompt beside its window must then be held.
  std::uint32_t max_step_rows = 0;
};

struct GroupStats {
  PoolCounts pool;
  std::uint64_t claimed = 0;
  std::uint32_t reserved = 0;
  std::uint32_t block_tokens = 0;
  std::uint32_t superpages = 0;       // that it has
  std::uint64_t left_behind = 0;      // blocks let go because a window had passed them, since creation
  std::uint64_t moved = 0;            // blocks moved to empty a superpage, since creation
};

// Bytes to copy, block `from` to block `to` of a group, before the step that follows writes.
struct CopyBlock {
  std::uint32_t group = 0;
  BlockId from = kNoBlock, to = kNoBlock;
};

// What sequences that fork from each other may take beyond their own claims, held for them: a number of each group, and slots
// for those that have not begun. A value of its owner; the cache counts what all of them hold.
struct ForkReserve {
  std::array<std::uint64_t, kMaxGroups> blocks{};
  std::uint32_t slots = 0;
};

class KvCache {
 public:
  // Errors: bad_input for no group, more than kMaxGroups, a zero size, or all blocks reserved.
  static Result<KvCache> create(const KvCacheConfig& config);
  // Heap bytes that create() takes for this configuration, all of them. REQUIRES: create() would accept it.
  static std::uint64_t metadata_bytes(const KvCacheConfig& config);

  // The admission rule: the bound is rows_bound(prompt, max_new) rows, of which every group holds what it reaches. A plain
  // value, no allocation.
  FitVerdict can_admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) const;
  // Claims the bound in all groups at once. Errors: does_not_fit (never will) or exhausted (not now), with both
  // numbers; nothing has changed then.
  Result<SequenceId> admit(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens);

  // Room for n more rows, from the claim: always succeeds within the bound. REQUIRES: rows + n <= bound; where a group has a
  // window, at most max_step_rows since the last commit(). If the last block was shared, copies() grows by one entry a group.
  void reserve_rows(SequenceId sequence, std::uint32_t n);
  // All rows so far are stored and stay: the next one is a step's first. Blocks that it and later ones do not reach are let
  // go, and claims that only the prompt needed are given back.
  void commit(SequenceId sequence);
  // Drops the rows after the first `rows`; their blocks go back to the claim (speculation, an abandoned step).
  // REQUIRES: committed rows <= rows <= rows(sequence) where a group has a window; no block that loses a row is shared.
  void truncate(SequenceId sequence, std::uint32_t rows);
  // Whether another sequence may start with the first `rows` rows of this one: they are committed, and no window has let go
  // what row `rows` reaches.
  bool can_share(SequenceId sequence, std::uint32_t rows) const;
  // What that costs, for AdmissionBudget. REQUIRES: can_share(sequence, rows).
  SharedRows sharing(SequenceId sequence, std::uint32_t rows) const;
  // As admit(), for a sequence that starts with the first `rows` rows of another: it shares their full blocks, and as its next
  // row goes into the last one if that is partial, has a copy of that (copies() grows by one a group). Claims what it may
  // still take. REQUIRES: can_share(from, rows), 0 < rows < prompt_tokens.
  Result<SequenceId> admit_sharing(SequenceId from, std::uint32_t rows, std::uint64_t prompt_tokens, std::uint64_t max_new_tokens);
  // As admit(), for the first of `sequences` that will fork from each other, whatever of each other they continue. `reserve`
  // gets what the others need; give it to fork_among(), in the end to give_back().
  Result<SequenceId> admit_forking(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens, std::uint32_t sequences,
                                   ForkReserve& reserve);
  // Sequence i goes on from where sequence parents[i] stood: those that nobody continues are released, one that several do is
  // forked. Always succeeds. members: in, the sequences (not valid: not begun); out, those after it, with the bounds as admitted.
  // REQUIRES: all committed, of equal rows; the first call has one member that has begun, later ones have only such.
  void fork_among(std::span<SequenceId> members, std::span<const std::uint32_t> parents, ForkReserve& reserve);
  void give_back(ForkReserve& reserve);
  // A second sequence that starts with all rows of the first, sharing its blocks, and may grow to `bound_rows`.
  // Claims what it may still take: everything past the full shared blocks; and for the first one a copy of the last
  // block, if that is partial. Errors as admit(); nothing has changed then. REQUIRES: bound_rows >= rows(sequence).
  Result<SequenceId> fork(SequenceId sequence, std::uint64_t bound_rows);
  // Frees the sequence's blocks and claims, at any moment of its life. The id is dead afterwards.
  void release(SequenceId sequence);

  // Moves blocks within groups until a sequence of this bound fits that does not now for the holes in superpages: copies()
  // grows, by kMovesPerStep at most; what remains is for the next step. Does nothing where it fits already or would not even
  // then. REQUIRES: no row is reserved that is not committed (no step in flight).
  void compact(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens);

  // Copies asked for since clear_copies(), to be made in order.
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
  BlockState state(std::uint32_t group, BlockId block) const { return groups_[group].pool.state(block); }
  // Superpages of the arena that no group has; 0 where no group draws any.
  std::uint32_t free_superpages() const { return superpages_ ? superpages_->free() : 0; }
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
    format::Reach reach;
    bool draws_superpages;
    std::uint32_t table_capacity;
    std::unique_ptr<BlockId[]> table_storage;  // [max_sequences][table_capacity]
    std::uint64_t left_behind = 0, moved = 0;
  };
  struct Slot {
    std::uint32_t generation = 0;
    bool used = false;
    std::uint32_t rows = 0, committed = 0;
    std::uint64_t prompt = 0, bound = 0;
    bool keeps_claims = false;   // what it does not need is its family's (fork_among)
    std::array<BlockTable, kMaxGroups> tables{};
    std::array<std::uint64_t, kMaxGroups> claimed{};
    std::array<bool, kMaxGroups> copy_claimed{};  // one of `claimed` is for a copy of the last block
  };

  explicit KvCache(const KvCacheConfig& config);
  std::uint32_t slot_of(SequenceId sequence) const;
  SequenceId open_slot(std::uint64_t prompt, std::uint64_t bound_rows);
  std::uint64_t step_rows(const Slot& slot) const;
  std::uint64_t most_held(const Slot& slot, std::uint32_t group) const;
  std::uint64_t growth(const Slot& slot, std::uint32_t group) const;
  std::uint64_t claim_for(const Slot& slot, std::uint32_t group, std::uint64_t no_longer_alone = 0) const;
  void give_back_claim(Slot& slot, std::uint32_t group);
  void settle_claim(Slot& slot, std::uint32_t group, std::uint64_t freed = 0);
  void take(Slot& slot, std::uint32_t group, std::uint32_t blocks);
  void give_back_superpages(Group& group);
  void settle_last_block(Slot& slot, std::uint32_t group);
  void share_prefix(const BlockTable& from, Slot& slot, std::uint32_t group, std::uint32_t rows);
  void reserve_blocks(ForkReserve& reserve, std::uint32_t group, std::uint64_t blocks);
  void move_block(std::uint32_t group, BlockId from, std::uint32_t out_of);
  bool empty_one_superpage(std::span<const std::uint64_t> wanted);
  void ask_copy(const CopyBlock& copy);
  // Those of them that compact() may ask for: as many are left over as last blocks may be shared.
  std::uint64_t moves_left() const { return copies_.size() < kMovesPerStep ? kMovesPerStep - copies_.size() : 0; }
  void check_group(std::uint32_t group) const;
  void check_arena() const;

  std::vector<Group> groups_;
  std::optional<SuperpagePool> superpages_;  // where groups draw from one arena
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  // a stack
  std::vector<CopyBlock> copies_;
  std::vector<SequenceId> fork_scratch_;
  std::array<std::uint64_t, kMaxGroups> held_for_forks_{};   // of all reserves
  std::uint32_t slots_for_forks_ = 0;
  std::uint64_t max_sequence_rows_ = 0, max_step_rows_ = 0;
  std::uint64_t live_rows_ = 0;
};

}  // namespace kvasir::cache
