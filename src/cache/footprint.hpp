// What the cache's metadata costs, and how many rows and blocks a request needs. The planner and the allocation both
// call these functions; nothing else multiplies.
// Thread rule: pure functions, any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "format/block_count.hpp"

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

using format::blocks_for_rows;
using format::blocks_held;

// Rows that a step adds to one sequence: of a prompt of which so many are left as many as it may (most 0: all), else one.
constexpr std::uint64_t rows_of_step(std::uint64_t prompt_left, std::uint64_t most) {
  if (prompt_left == 0) return 1;
  return most == 0 || prompt_left < most ? prompt_left : most;
}

// Rows in the last block: 0 for no rows, else 1 .. block_tokens (a multiple of block_tokens fills its last block).
constexpr std::uint32_t last_block_rows(std::uint64_t rows, std::uint32_t block_tokens) {
  return rows == 0 ? 0 : static_cast<std::uint32_t>((rows - 1) % block_tokens) + 1;
}

// Blocks that one sequence's table has room for in a pool of `blocks`: it can never hold more than the pool has.
constexpr std::uint32_t table_capacity(std::uint64_t max_sequence_rows, format::Reach reach, std::uint64_t max_step_rows,
                                       std::uint32_t block_tokens, std::uint32_t blocks) {
  const std::uint64_t wanted = blocks_held(max_sequence_rows, reach, max_step_rows, block_tokens);
  return wanted < blocks ? static_cast<std::uint32_t>(wanted) : blocks;
}

// Bytes that a BlockPool of so many superpages allocates at construction; `shuffled`: with an allocation order of its own.
std::uint64_t pool_metadata_bytes(std::uint32_t superpages, std::uint32_t blocks_per_superpage, bool shuffled);

// Bytes of a SuperpagePool.
std::uint64_t superpage_metadata_bytes(std::uint32_t superpages);

// Bytes of the block tables of `max_sequences` sequences in one group.
std::uint64_t table_metadata_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks);

// Bytes that a PageTable for `max_sequences` sequences of `capacity_blocks` blocks each allocates at construction.
std::uint64_t page_table_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks);

}  // namespace kvasir::cache
