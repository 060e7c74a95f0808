// What the cache's metadata costs, and how many rows and blocks a request needs. The planner and the allocation both
// call these functions; nothing else multiplies.
// Thread rule: pure functions, any thread.
#pragma once

#include <cstdint>
#include <limits>

namespace kvasir::cache {

// A row count that no cache can hold: what rows_bound returns instead of overflowing.
inline constexpr std::uint64_t kRowsUnbounded = std::numeric_limits<std::uint64_t>::max();

// Token rows that a request may store in all: prompt_tokens + max_new_tokens - 1. The last token sampled is given to
// the client and never fed back, so it needs no row: a pool of 64 rows serves (prompt 60, new 5) and ends with
// `length`. With max_new_tokens = 0 the prompt alone is stored. Saturates at kRowsUnbounded.
constexpr std::uint64_t rows_bound(std::uint64_t prompt_tokens, std::uint64_t max_new_tokens) {
  const std::uint64_t fed_back = max_new_tokens == 0 ? 0 : max_new_tokens - 1;
  return fed_back > kRowsUnbounded - prompt_tokens ? kRowsUnbounded : prompt_tokens + fed_back;
}

// Blocks that hold `rows` rows. Any rows, no overflow.
constexpr std::uint64_t blocks_for_rows(std::uint64_t rows, std::uint32_t block_tokens) {
  return rows / block_tokens + (rows % block_tokens != 0 ? 1 : 0);
}

// Most blocks that the last `window` of `rows` rows lie in, wherever they end; window 0 = all rows. They may begin with the
// last row of a block.
constexpr std::uint64_t blocks_for_window(std::uint64_t rows, std::uint32_t window, std::uint32_t block_tokens) {
  const std::uint64_t all = blocks_for_rows(rows, block_tokens);
  if (window == 0) return all;
  const std::uint64_t spanned = blocks_for_rows(std::uint64_t{window} - 1, block_tokens) + 1;
  return spanned < all ? spanned : all;
}

// Rows in the last block: 0 for no rows, else 1 .. block_tokens (a multiple of block_tokens fills its last block).
constexpr std::uint32_t last_block_rows(std::uint64_t rows, std::uint32_t block_tokens) {
  return rows == 0 ? 0 : static_cast<std::uint32_t>((rows - 1) % block_tokens) + 1;
}

// Blocks that one sequence's table has room for in a pool of `blocks`: it can never hold more than the pool has.
constexpr std::uint32_t table_capacity(std::uint64_t max_sequence_rows, std::uint32_t block_tokens,
                                       std::uint32_t blocks) {
  const std::uint64_t wanted = blocks_for_rows(max_sequence_rows, block_tokens);
  return wanted < blocks ? static_cast<std::uint32_t>(wanted) : blocks;
}

// Bytes that a BlockPool of `blocks` allocates at construction; `shuffled`: with an allocation order of its own.
std::uint64_t pool_metadata_bytes(std::uint32_t blocks, bool shuffled);

// Bytes of the block tables of `max_sequences` sequences in one group.
std::uint64_t table_metadata_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks);

// Bytes that a PageTable for `max_sequences` sequences of `capacity_blocks` blocks each allocates at construction.
std::uint64_t page_table_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks);

}  // namespace kvasir::cache
