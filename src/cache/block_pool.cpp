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

BlockPool::BlockPool(std::uint32_t blocks, std::optional<std::uint64_t> allocation_order)
    : refs_(blocks, 0), flags_(blocks, 0), free_ranks_(blocks) {
  KV_CHECK(blocks <= kMaxBlocks, "block ids are int32");
  counts_.total = counts_.free = blocks;
  if (!allocation_order) return;
  block_of_rank_.resize(blocks);
  rank_of_block_.resize(blocks);
  std::iota(block_of_rank_.begin(), block_of_rank_.end(), 0u);
  PhiloxSequence random(*allocation_order);
  for (std::uint32_t i = blocks - 1; i > 0; --i)  // Fisher-Yates
    std::swap(block_of_rank_[i], block_of_rank_[random.below(i + 1)]);
  for (std::uint32_t r = 0; r < blocks; ++r) rank_of_block_[block_of_rank_[r]] = r;
}

std::uint32_t BlockPool::index(BlockId block) const {
  const auto i = static_cast<std::uint32_t>(block);
  KV_CHECK(i < counts_.total, "no such block in this pool");
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
  return (flags_[i] & kPublished) != 0 ? BlockState::cached : BlockState::free;
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
      break;
  }
  return counts_.free;
}

void BlockPool::change(BlockId block, std::uint32_t refs, std::uint8_t flags) {
  const std::uint32_t i = index(block);
  const BlockState before = state(block);
  const bool pinned_before = before == BlockState::cached && (flags_[i] & kPinned) != 0;
  refs_[i] = refs;
  flags_[i] = flags;
  const BlockState after = state(block);
  const bool pinned_after = after == BlockState::cached && (flags & kPinned) != 0;
  counts_.pinned += (pinned_after ? 1u : 0u) - (pinned_before ? 1u : 0u);
  if (before == after) return;
  --counter(before);
  ++counter(after);
  if (before == BlockState::free) free_ranks_.erase(rank(block));
  if (after == BlockState::free) free_ranks_.insert(rank(block));
}

BlockId BlockPool::allocate() {
  KV_CHECK(counts_.free > 0, "allocate() needs a free block: claim before allocating");
  const std::uint32_t lowest = free_ranks_.lowest();
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
  change(block, refs(block), flags | kQuarantined);
}

void BlockPool::unquarantine(BlockId block) {
  const std::uint8_t flags = flags_[index(block)];
  KV_CHECK((flags & kQuarantined) != 0, "unquarantined a block that is not quarantined");
  change(block, refs(block), static_cast<std::uint8_t>(flags & ~kQuarantined));
}

void BlockPool::check_invariants() const {
  PoolCounts derived;
  derived.total = static_cast<std::uint32_t>(refs_.size());
  for (std::uint32_t i = 0; i < derived.total; ++i) {
    const auto block = static_cast<BlockId>(i);
    const BlockState now = state(block);
    derived.active += now == BlockState::active;
    derived.cached += now == BlockState::cached;
    derived.free += now == BlockState::free;
    derived.quarantined += now == BlockState::quarantined;
    derived.pinned += now == BlockState::cached && (flags_[i] & kPinned) != 0;
    KV_CHECK(free_ranks_.contains(rank(block)) == (now == BlockState::free), "the free set disagrees with a state");
    KV_CHECK((flags_[i] & (kPublished | kPinned)) != kPinned, "a pinned block is published");
  }
  KV_CHECK(derived == counts_, "a counter disagrees with the blocks' states");
  KV_CHECK(counts_.active + counts_.cached + counts_.free + counts_.quarantined == counts_.total,
           "active + cached + free + quarantined = total");
  free_ranks_.check_invariants();
}

}  // namespace kvasir::cache
