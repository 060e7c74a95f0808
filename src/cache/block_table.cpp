#include "cache/block_table.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "cache/footprint.hpp"

namespace kvasir::cache {

std::uint32_t BlockTable::last_block_len() const { return last_block_rows(rows_, block_tokens_); }

std::uint32_t BlockTable::blocks_to_append(std::uint32_t n) const {
  return static_cast<std::uint32_t>(blocks_for_rows(std::uint64_t{rows_} + n, block_tokens_)) - dropped_ - blocks_;
}

bool BlockTable::needs_copy(const BlockPool& pool) const {
  if (rows_ % block_tokens_ == 0) return false;
  return !pool.held_alone(storage_[blocks_ - 1]);
}

std::uint32_t BlockTable::held_alone(std::uint32_t first, std::uint32_t end, const BlockPool& pool) const {
  const auto alone = [&pool](BlockId block) { return pool.held_alone(block); };
  return static_cast<std::uint32_t>(std::ranges::count_if(ids().subspan(first - dropped_, end - first), alone));
}

void BlockTable::append(std::uint32_t n, BlockPool& pool) {
  if (n == 0) return;
  KV_CHECK(!needs_copy(pool), "wrote into a shared block: copy it first");
  const std::uint32_t more = blocks_to_append(n);
  KV_CHECK(more <= capacity() - blocks_, "a sequence outgrew its table: rows beyond its bound");
  for (std::uint32_t i = 0; i < more; ++i) storage_[blocks_++] = pool.allocate();
  rows_ += n;
}

BlockTable::Replaced BlockTable::replace_last(BlockPool& pool) {
  KV_CHECK(needs_copy(pool), "copied a block that is not shared");
  BlockId& last = storage_[blocks_ - 1];
  const Replaced replaced{last, pool.allocate()};
  pool.release(last);
  last = replaced.to;
  return replaced;
}

std::uint32_t BlockTable::drop_before(std::uint32_t first_block, BlockPool& pool) {
  if (first_block <= dropped_) return 0;
  const std::uint32_t n = first_block - dropped_;
  KV_CHECK(n <= blocks_, "only blocks that a table holds are dropped");
  for (const BlockId block : ids().first(n)) pool.release(block);
  std::ranges::copy(ids().subspan(n), storage_.begin());
  dropped_ = first_block;
  blocks_ -= n;
  return n;
}

void BlockTable::truncate(std::uint32_t rows, BlockPool& pool) {
  KV_CHECK(rows <= rows_, "truncate() cannot lengthen");
  const auto kept = static_cast<std::uint32_t>(blocks_for_rows(rows, block_tokens_));
  KV_CHECK(kept >= dropped_, "rows whose blocks were let go cannot come back");
  while (dropped_ + blocks_ > kept) pool.release(storage_[--blocks_]);
  rows_ = rows;
}

void BlockTable::clear(BlockPool& pool) {
  while (blocks_ > 0) pool.release(storage_[--blocks_]);
  rows_ = dropped_ = 0;
}

bool BlockTable::replace(BlockId from, BlockId to) {
  const auto at = std::ranges::find(storage_.first(blocks_), from);
  if (at == storage_.begin() + blocks_) return false;
  *at = to;
  return true;
}

void BlockTable::share(const BlockTable& other, BlockPool& pool) {
  KV_CHECK(rows_ == 0 && block_tokens_ == other.block_tokens_, "only an empty table of the same block size can share");
  KV_CHECK(other.blocks_ <= capacity(), "no room for the shared blocks");
  std::ranges::copy(other.ids(), storage_.begin());
  for (const BlockId block : other.ids()) pool.add_ref(block);
  blocks_ = other.blocks_;
  dropped_ = other.dropped_;
  rows_ = other.rows_;
}

void BlockTable::share_front(const BlockTable& other, std::uint32_t rows, std::uint32_t first_block, BlockPool& pool) {
  const std::uint32_t full = rows / block_tokens_;
  KV_CHECK(rows_ == 0 && block_tokens_ == other.block_tokens_, "only an empty table of the same block size can share");
  KV_CHECK(rows <= other.rows_ && first_block >= other.dropped_ && first_block <= full, "only blocks that are held are shared");
  KV_CHECK(full - first_block <= capacity(), "no room for the shared blocks");
  const std::span<const BlockId> blocks = other.ids().subspan(first_block - other.dropped_, full - first_block);
  std::ranges::copy(blocks, storage_.begin());
  for (const BlockId block : blocks) pool.add_ref(block);
  blocks_ = full - first_block;
  dropped_ = first_block;
  rows_ = full * block_tokens_;
}

void BlockTable::check_invariants(const BlockPool& pool) const {
  KV_CHECK(dropped_ + blocks_ == blocks_for_rows(rows_, block_tokens_), "a table has the blocks that its rows need");
  KV_CHECK(blocks_ <= capacity(), "a table is within its storage");
  for (const BlockId block : ids()) KV_CHECK(pool.state(block) == BlockState::active, "a block in a table is active");
}

}  // namespace kvasir::cache
