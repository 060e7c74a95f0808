// One sequence's blocks in one group, in token order.
// Thread rule: one owner. Allocates nothing: it works in storage given to it.
//
// Invariants: dropped() + blocks() = blocks_for_rows(rows()), blocks() <= capacity(); the table holds one reference to each
// of its blocks; only the last block can be partial, and it is written only while no other table holds it.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "cache/block_pool.hpp"

namespace kvasir::cache {

class BlockTable {
 public:
  BlockTable() = default;
  // storage: room for the blocks that a sequence holds at one time; outlives the table.
  BlockTable(std::span<BlockId> storage, std::uint32_t block_tokens) : storage_(storage), block_tokens_(block_tokens) {}

  std::uint32_t rows() const { return rows_; }
  // Blocks held, and those before them that were let go: ids()[0] is the sequence's block number dropped().
  std::uint32_t blocks() const { return blocks_; }
  std::uint32_t dropped() const { return dropped_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(storage_.size()); }
  std::uint32_t block_tokens() const { return block_tokens_; }
  std::span<const BlockId> ids() const { return storage_.first(blocks_); }
  // Rows in the last block: 0 when empty, else 1 .. block_tokens.
  std::uint32_t last_block_len() const;

  // Blocks that append(n) takes. A copy of a shared last block comes on top: needs_copy().
  std::uint32_t blocks_to_append(std::uint32_t n) const;
  // The last block is partial and others hold it or the prefix tree knows it: it must be copied before it is written.
  bool needs_copy(const BlockPool& pool) const;
  // Of its blocks numbered [first, end) in the sequence, those that no other holds or knows. REQUIRES: it holds them.
  std::uint32_t held_alone(std::uint32_t first, std::uint32_t end, const BlockPool& pool) const;

  // n more rows, taking blocks_to_append(n) blocks from the pool.
  // REQUIRES: room in the table, free blocks in the pool, and no needs_copy() unless n = 0.
  void append(std::uint32_t n, BlockPool& pool);
  // Puts a fresh block in the place of the shared last one and says which to copy. REQUIRES: needs_copy(), a free
  // block.
  struct Replaced {
    BlockId from = kNoBlock, to = kNoBlock;
  };
  Replaced replace_last(BlockPool& pool);
  // Lets go the blocks before number `first_block`, whose rows no later row reaches. Returns how many. REQUIRES: first_block
  // <= dropped() + blocks().
  std::uint32_t drop_before(std::uint32_t first_block, BlockPool& pool);
  // Keeps the first `rows` rows and releases the blocks after them. REQUIRES: rows <= rows(), and none that was dropped.
  void truncate(std::uint32_t rows, BlockPool& pool);
  // Releases all blocks; empty afterwards.
  void clear(BlockPool& pool);
  // Puts `to` in the place of a block that it holds: its content has moved. False if it holds no such block.
  bool replace(BlockId from, BlockId to);
  // Becomes a second holder of another's full blocks among its first `rows` rows, from number first_block on: rows() is then
  // rows rounded down to whole blocks. REQUIRES: empty, room for them, same block size, the other holds them.
  void share_front(const BlockTable& other, std::uint32_t rows, std::uint32_t first_block, BlockPool& pool);
  // Becomes a second holder of all of another's blocks. REQUIRES: empty, room for them, same block size.
  void share(const BlockTable& other, BlockPool& pool);

  // Re-derives the block count; aborts if a held block is not active in the pool.
  void check_invariants(const BlockPool& pool) const;

 private:
  std::span<BlockId> storage_;
  std::uint32_t block_tokens_ = 1;
  std::uint32_t rows_ = 0, blocks_ = 0, dropped_ = 0;
};

}  // namespace kvasir::cache
