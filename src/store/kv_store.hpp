// The bytes of the KV cache: one arena of superpages, which any group may slice into its blocks. Block b of a group lies in
// superpage b / blocks_per_superpage, whichever group has that one now.
// Thread rule: one owner for populate, copy and poison; rows are written and read by kernels through view(), whose
// blocks the cache's metadata hands to one sequence at a time.
// Invariant: arena + slack = capacity, to the byte (StorePlan).
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "format/block_layout.hpp"
#include "store/arena.hpp"
#include "store/footprint.hpp"

namespace kvasir::store {

#ifdef NDEBUG
inline constexpr bool kPoisonByDefault = false;
#else
inline constexpr bool kPoisonByDefault = true;
#endif

struct KvStoreConfig {
  format::KvGeometry geometry;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t minimum_rows = 1;       // a sequence of that many rows must fit
  // Else populate_blocks() before a claim is granted. Several groups: always, for any of them may come to have a superpage.
  bool populate_at_start = true;
  bool poison_free = kPoisonByDefault;  // memory starts as NaN, and poison_block() does something
  ArenaOptions arena;
};

class KvStore {
 public:
  // Errors: does_not_fit with both numbers (capacity below a sequence's need; memory not there), bad_input (geometry).
  static Result<KvStore> create(const KvStoreConfig& config);

  std::uint32_t groups() const { return static_cast<std::uint32_t>(plan_.groups.size()); }
  std::uint32_t blocks(std::uint32_t group) const { return plan_.groups[group].blocks; }
  const format::PagedKvView& view(std::uint32_t group) const { return views_[group]; }
  const StorePlan& plan() const { return plan_; }
  const Arena& arena() const { return arena_; }

  // Makes blocks 0 .. count-1 of the only group resident: before a claim is granted, with count = occupied + claimed blocks
  // (the pool hands out the lowest id first). Errors: does_not_fit with both numbers; nothing has changed then.
  Status populate_blocks(std::uint32_t group, std::uint32_t count);
  std::uint32_t populated_blocks(std::uint32_t group) const { return populated_[group]; }

  // Copies all rows of a block. REQUIRES: both populated, from != to.
  void copy_block(std::uint32_t group, BlockId from, BlockId to);
  // Fills a block that nobody reads with NaN, so that a stale read shows; nothing unless poison_free.
  void poison_block(std::uint32_t group, BlockId block);

 private:
  KvStore(StorePlan plan, Arena arena, bool poison);
  Status populate_all();
  std::byte* address(std::uint32_t group, BlockId block) const;
  std::byte* populated_address(std::uint32_t group, BlockId block) const;

  StorePlan plan_;
  Arena arena_;
  std::vector<format::PagedKvView> views_;
  std::vector<std::uint32_t> populated_;
  bool poison_ = false;
};

}  // namespace kvasir::store
