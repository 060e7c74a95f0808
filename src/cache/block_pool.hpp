// The blocks of one cache group: which are taken, by how many, and which may be taken. Ids and counts only.
// Thread rule: one owner. Allocates at construction only.
//
// A block's state follows from its reference count and flags:
//
//   active       refs > 0: held by running sequences
//   quarantined  refs = 0 and flagged: taken out after a failed check (a flagged active block goes there when released)
//   cached       refs = 0 and published: held by the prefix tree alone, evictable unless pinned
//   free         none of these
//   absent       its superpage is not this group's: no block at all
//
// Ids run over every superpage of the arena, so block b lies in superpage b / blocks_per_superpage; a group that shares the
// arena has those that were added, one alone has a single superpage with all of its blocks.
//
// Invariants: active + cached + free + quarantined = total = superpages * blocks_per_superpage; pinned (both pinned and
// cached) <= cached.
//
// Allocation takes the fullest superpage that has a free block, the lowest of these, and its lowest free id: so others run
// empty and go back to the arena. The choice depends on the set of free blocks alone, not on the order in which they came
// back, so a replay from a snapshot is exact; in one superpage free memory gathers at the high end, so if ids below H are
// populated and H >= occupied + claims, every claim is served below H (store populates by that rule).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "cache/free_set.hpp"

namespace kvasir::cache {

enum class BlockState : std::uint8_t { free, active, cached, quarantined, absent };

struct PoolCounts {
  std::uint32_t total = 0;
  std::uint32_t active = 0, cached = 0, free = 0, quarantined = 0;
  std::uint32_t pinned = 0;  // of the cached ones: those that may not be evicted
  std::uint64_t shared = 0;  // references beyond the first of each block: blocks that sharing saves
  // What claims may cover: free now, or by eviction.
  std::uint64_t available() const { return std::uint64_t{free} + cached - pinned; }
  bool operator==(const PoolCounts&) const = default;
};

class BlockPool {
 public:
  // One superpage, the group's own. blocks: 1 .. 2^31-1. With an `allocation_order` seed, "lowest" in a superpage is by a
  // random permutation drawn from the seed: for tests and deployments that must show that results do not depend on where
  // blocks lie.
  explicit BlockPool(std::uint32_t blocks, std::optional<std::uint64_t> allocation_order = std::nullopt);
  // Of an arena of so many superpages, none of them this group's yet. REQUIRES: at most 2^31-1 blocks.
  BlockPool(std::uint32_t superpages, std::uint32_t blocks_per_superpage, std::optional<std::uint64_t> allocation_order);

  // Slices a superpage into free blocks / gives it up. REQUIRES: absent / this group's, and all of its blocks free.
  void add_superpage(std::uint32_t superpage);
  void remove_superpage(std::uint32_t superpage);
  // The lowest superpage all of whose blocks are free; nothing if there is none, or it is a group's own and only one.
  std::optional<std::uint32_t> empty_superpage() const;
  // Of the superpages whose blocks in use could move (none published or quarantined), that with the fewest, one at least: the
  // highest of these, so that allocate() fills the others first. Nothing if there is none. O(blocks).
  std::optional<std::uint32_t> emptiest_superpage() const;
  std::uint32_t superpages() const { return counts_.total / blocks_per_superpage_; }
  std::uint32_t blocks_per_superpage() const { return blocks_per_superpage_; }
  bool has_superpage(std::uint32_t superpage) const { return present_[superpage] != 0; }
  std::uint32_t free_in(std::uint32_t superpage) const { return free_in_[superpage]; }

  // Takes a free block, chosen as above; it has one reference. REQUIRES: counts().free > 0.
  BlockId allocate();
  // The same, in another superpage than this one. REQUIRES: a free block there.
  BlockId allocate_outside(std::uint32_t superpage);
  // One more holder. REQUIRES: active, or cached and not quarantined (a prefix hit).
  void add_ref(BlockId block);
  // One holder less; the last one leaves it cached, quarantined or free. REQUIRES: active.
  void release(BlockId block);

  // The prefix tree knows this block's content / forgets it. REQUIRES: active and not published / published, unpinned.
  // A block is never allocated while published: a recycled block has lost its old key first.
  void publish(BlockId block);
  void unpublish(BlockId block);
  // Keeps a published block from eviction / lets it go. REQUIRES: published and not pinned / pinned.
  void pin(BlockId block);
  void unpin(BlockId block);

  // Takes the block out of use, at once or when its last holder releases it. REQUIRES: neither published nor flagged.
  void quarantine(BlockId block);
  // Back to use. REQUIRES: flagged.
  void unquarantine(BlockId block);

  BlockState state(BlockId block) const;
  std::uint32_t refs(BlockId block) const { return refs_[index(block)]; }
  // A held block that nobody else holds or knows: it may be written, and is free when its holder lets it go.
  bool held_alone(BlockId block) const { return refs(block) == 1 && !published(block); }
  bool published(BlockId block) const { return (flags_[index(block)] & kPublished) != 0; }
  const PoolCounts& counts() const { return counts_; }

  // Re-derives every counter and the free set; aborts on a difference.
  void check_invariants() const;

 private:
  static constexpr std::uint8_t kPublished = 1, kPinned = 2, kQuarantined = 4;

  BlockPool(std::uint32_t superpages, std::uint32_t blocks_per_superpage, bool present,
            std::optional<std::uint64_t> allocation_order);
  std::uint32_t all_superpages() const { return static_cast<std::uint32_t>(present_.size()); }
  void shuffle(std::uint64_t seed);
  bool movable(std::uint32_t superpage) const;
  BlockId allocate_in(std::uint32_t superpage);
  // How many blocks of a superpage are free has changed from `before` to `after`.
  void move_by_fullness(std::uint32_t superpage, std::uint32_t before, std::uint32_t after);
  std::uint32_t index(BlockId block) const;
  std::uint32_t rank(BlockId block) const;
  std::uint32_t& counter(BlockState state);
  // Changes refs and flags, and moves the block between the counters and the free set accordingly.
  void change(BlockId block, std::uint32_t refs, std::uint8_t flags);

  std::vector<std::uint32_t> refs_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> block_of_rank_, rank_of_block_;  // empty = identity
  FreeSet free_ranks_;
  std::vector<std::uint32_t> free_in_;   // [superpage] free blocks
  std::vector<std::uint8_t> present_;    // [superpage] whether it is the group's
  // Of several superpages: (free blocks - 1) * superpages + superpage of those that have free blocks.
  std::optional<FreeSet> by_fullness_;
  std::uint32_t blocks_per_superpage_;
  PoolCounts counts_;
};

}  // namespace kvasir::cache
