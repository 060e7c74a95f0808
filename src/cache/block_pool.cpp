#include "cache/block_pool.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/prng.hpp"

namespace kvasir::cache {
namespace {

constexpr std::uint32_t kMaxBlocks = static_cast<std::uint32_t>(std::numeric_limits<BlockId>::max());

}  // namespace

BlockPool::BlockPool(std::uint32_t superpages, std::uint32_t blocks_per_superpage, bool present,
                     std::optional<std::uint64_t> allocation_order)
    : refs_(std::size_t{superpages} * blocks_per_superpage, 0),
      flags_(refs_.size(), 0),
      free_ranks_(static_cast<std::uint32_t>(refs_.size()), present),
      free_in_(superpages, present ? blocks_per_superpage : 0),
      present_(superpages, present ? 1 : 0),
      blocks_per_superpage_(blocks_per_superpage) {
  KV_CHECK(refs_.size() <= kMaxBlocks, "block ids are int32");
  if (present) counts_.total = counts_.free = superpages * blocks_per_superpage;
  if (superpages > 1) by_fullness_.emplace(static_cast<std::uint32_t>(refs_.size()), false);
  if (allocation_order) shuffle(*allocation_order);
}

BlockPool::BlockPool(std::uint32_t blocks, std::optional<std::uint64_t> allocation_order)
    : BlockPool(1, blocks, true, allocation_order) {}

BlockPool::BlockPool(std::uint32_t superpages, std::uint32_t blocks_per_superpage,
                     std::optional<std::uint64_t> allocation_order)
    : BlockPool(superpages, blocks_per_superpage, false, allocation_order) {}

// Within each superpage, so that ranks stay within it.
void BlockPool::shuffle(std::uint64_t seed) {
  block_of_rank_.resize(refs_.size());
  rank_of_block_.resize(refs_.size());
  std::iota(block_of_rank_.begin(), block_of_rank_.end(), 0u);
  PhiloxSequence random(seed);
  for (std::uint32_t s = 0; s < all_superpages(); ++s) {
    const std::uint32_t first = s * blocks_per_superpage_;
    for (std::uint32_t i = blocks_per_superpage_ - 1; i > 0; --i)  // Fisher-Yates
      std::swap(block_of_rank_[first + i], block_of_rank_[first + random.below(i + 1)]);
  }
  for (std::uint32_t r = 0; r < block_of_rank_.size(); ++r) rank_of_block_[block_of_rank_[r]] = r;
}

void BlockPool::move_by_fullness(std::uint32_t superpage, std::uint32_t before, std::uint32_t after) {
  free_in_[superpage] = after;
  if (!by_fullness_) return;
  if (before > 0) by_fullness_->erase((before - 1) * all_superpages() + superpage);
  if (after > 0) by_fullness_->insert((after - 1) * all_superpages() + superpage);
}

void BlockPool::add_superpage(std::uint32_t superpage) {
  KV_CHECK(superpage < all_superpages() && present_[superpage] == 0, "a superpage is added once");
  present_[superpage] = 1;
  for (std::uint32_t i = 0; i < blocks_per_superpage_; ++i) free_ranks_.insert(superpage * blocks_per_superpage_ + i);
  counts_.total += blocks_per_superpage_;
  counts_.free += blocks_per_superpage_;
  move_by_fullness(superpage, 0, blocks_per_superpage_);
}

void BlockPool::remove_superpage(std::uint32_t superpage) {
  KV_CHECK(superpage < all_superpages() && free_in_[superpage] == blocks_per_superpage_,
           "only a superpage whose blocks are all free is given up");
  present_[superpage] = 0;
  for (std::uint32_t i = 0; i < blocks_per_superpage_; ++i) free_ranks_.erase(superpage * blocks_per_superpage_ + i);
  counts_.total -= blocks_per_superpage_;
  counts_.free -= blocks_per_superpage_;
  move_by_fullness(superpage, blocks_per_superpage_, 0);
}

std::optional<std::uint32_t> BlockPool::empty_superpage() const {
  if (!by_fullness_) return std::nullopt;
  const std::uint32_t wholly_free = (blocks_per_superpage_ - 1) * all_superpages();
  const std::optional<std::uint32_t> found = by_fullness_->lowest_from(wholly_free);
  if (!found) return std::nullopt;
  return *found - wholly_free;
}

// Whether every block in use is held by tables alone: a published or quarantined one stays where it is.
bool BlockPool::movable(std::uint32_t superpage) const {
  for (std::uint32_t i = 0; i < blocks_per_superpage_; ++i) {
    const std::uint32_t block = superpage * blocks_per_superpage_ + i;
    if (flags_[block] != 0) return false;
  }
  return true;
}

std::optional<std::uint32_t> BlockPool::emptiest_superpage() const {
  std::optional<std::uint32_t> emptiest;
  for (std::uint32_t s = 0; s < all_superpages(); ++s) {
    if (present_[s] == 0 || free_in_[s] == blocks_per_superpage_ || !movable(s)) continue;
    if (!emptiest || free_in_[s] >= free_in_[*emptiest]) emptiest = s;
  }
  return emptiest;
}

std::uint32_t BlockPool::index(BlockId block) const {
  const auto i = static_cast<std::uint32_t>(block);
  KV_CHECK(i < refs_.size(), "no such block in this pool");
  return i;
}

std::uint32_t BlockPool::rank(BlockId block) const {
  const std::uint32_t i = index(block);
  return rank_of_block_.empty() ? i : rank_of_block_[i];
}

BlockState BlockPool::state(BlockId block) const {
  const std::uint32_t i = index(block);
  if (refs_[i] > 0) return BlockState::active;
  if ((flags_[i] & kQuarantined) != 0) return BlockState::quarantined;
  if ((flags_[i] & kPublished) != 0) return BlockState::cached;
  return present_[i / blocks_per_superpage_] != 0 ? BlockState::free : BlockState::absent;
}

std::uint32_t& BlockPool::counter(BlockState state) {
  switch (state) {
    case BlockState::active:
      return counts_.active;
    case BlockState::cached:
      return counts_.cached;
    case BlockState::quarantined:
      return counts_.quarantined;
    case BlockState::free:
    case BlockState::absent:
      break;
  }
  return counts_.free;
}

void BlockPool::change(BlockId block, std::uint32_t refs, std::uint8_t flags) {
  const std::uint32_t i = index(block);
  const BlockState before = state(block);
  const bool pinned_before = before == BlockState::cached && (flags_[i] & kPinned) != 0;
  counts_.shared += (refs > 1 ? refs - 1 : 0u);
  counts_.shared -= (refs_[i] > 1 ? refs_[i] - 1 : 0u);
  refs_[i] = refs;
  flags_[i] = flags;
  const BlockState after = state(block);
  const bool pinned_after = after == BlockState::cached && (flags & kPinned) != 0;
  counts_.pinned += (pinned_after ? 1u : 0u) - (pinned_before ? 1u : 0u);
  if (before == after) return;
  --counter(before);
  ++counter(after);
  const std::uint32_t superpage = i / blocks_per_superpage_;
  if (before == BlockState::free) {
    free_ranks_.erase(rank(block));
    move_by_fullness(superpage, free_in_[superpage], free_in_[superpage] - 1);
  }
  if (after == BlockState::free) {
    free_ranks_.insert(rank(block));
    move_by_fullness(superpage, free_in_[superpage], free_in_[superpage] + 1);
  }
}

BlockId BlockPool::allocate() {
  KV_CHECK(counts_.free > 0, "allocate() needs a free block: claim before allocating");
  return allocate_in(by_fullness_ ? by_fullness_->lowest() % all_superpages() : 0);
}

BlockId BlockPool::allocate_outside(std::uint32_t superpage) {
  KV_CHECK(by_fullness_ && counts_.free > free_in_[superpage], "allocate_outside() needs a free block in another superpage");
  const std::uint32_t fullest = by_fullness_->lowest();
  if (fullest % all_superpages() != superpage) return allocate_in(fullest % all_superpages());
  return allocate_in(by_fullness_->lowest_from(fullest + 1).value() % all_superpages());
}

BlockId BlockPool::allocate_in(std::uint32_t superpage) {
  const std::uint32_t lowest = free_ranks_.lowest_from(superpage * blocks_per_superpage_).value();
  const auto block = static_cast<BlockId>(block_of_rank_.empty() ? lowest : block_of_rank_[lowest]);
  change(block, 1, 0);
  return block;
}

void BlockPool::add_ref(BlockId block) {
  const BlockState now = state(block);
  KV_CHECK(now == BlockState::active || now == BlockState::cached, "only a block with content can be shared");
  change(block, refs(block) + 1, flags_[index(block)]);
}

void BlockPool::release(BlockId block) {
  KV_CHECK(refs(block) > 0, "released a block that nobody holds");
  change(block, refs(block) - 1, flags_[index(block)]);
}

void BlockPool::publish(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK(refs(block) > 0 && (flags & (kPublished | kQuarantined)) == 0,
           "only an active, sound, unpublished block is published");
  change(block, refs(block), flags | kPublished);
}

void BlockPool::unpublish(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & kPublished) != 0 && (flags & kPinned) == 0, "only a published, unpinned block is unpublished");
  change(block, refs(block), static_cast<std::uint8_t>(flags & ~kPublished));
}

void BlockPool::pin(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & kPublished) != 0 && (flags & kPinned) == 0, "only a published block is pinned, and once");
  change(block, refs(block), flags | kPinned);
}

void BlockPool::unpin(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & kPinned) != 0, "unpinned a block that is not pinned");
  change(block, refs(block), static_cast<std::uint8_t>(flags & ~kPinned));
}

void BlockPool::quarantine(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & (kPublished | kQuarantined)) == 0, "unpublish before quarantine, and quarantine once");
  KV_CHECK(state(block) != BlockState::absent, "a block is quarantined in its group's superpage");
  change(block, refs(block), flags | kQuarantined);
}

void BlockPool::unquarantine(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & kQuarantined) != 0, "unquarantined a block that is not quarantined");
  change(block, refs(block), static_cast<std::uint8_t>(flags & ~kQuarantined));
}

void BlockPool::check_invariants() const {
  PoolCounts derived;
  for (std::uint32_t s = 0; s < all_superpages(); ++s) {
    std::uint32_t free = 0;
    for (std::uint32_t i = s * blocks_per_superpage_; i < (s + 1) * blocks_per_superpage_; ++i) {
      const auto block = static_cast<BlockId>(i);
      const BlockState now = state(block);
      derived.active += now == BlockState::active;
      derived.cached += now == BlockState::cached;
      derived.free += now == BlockState::free;
      derived.quarantined += now == BlockState::quarantined;
      derived.pinned += now == BlockState::cached && (flags_[i] & kPinned) != 0;
      derived.shared += refs_[i] > 1 ? refs_[i] - 1 : 0;
      free += now == BlockState::free;
      KV_CHECK((now == BlockState::absent) == (present_[s] == 0), "blocks are there where their superpage is");
      KV_CHECK(free_ranks_.contains(rank(block)) == (now == BlockState::free), "the free set disagrees with a state");
      KV_CHECK((flags_[i] & (kPublished | kPinned)) != kPinned, "a pinned block is published");
    }
    KV_CHECK(free == free_in_[s], "a superpage's free blocks are counted");
    KV_CHECK(!by_fullness_ || free == 0 || by_fullness_->contains((free - 1) * all_superpages() + s),
             "a superpage with free blocks is found by its fullness");
    if (present_[s] != 0) derived.total += blocks_per_superpage_;
  }
  KV_CHECK(derived == counts_, "a counter disagrees with the blocks' states");
  KV_CHECK(counts_.active + counts_.cached + counts_.free + counts_.quarantined == counts_.total,
           "active + cached + free + quarantined = total");
  free_ranks_.check_invariants();
}

}  // namespace kvasir::cache
