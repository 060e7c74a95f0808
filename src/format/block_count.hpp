// How many blocks rows take: the one place that rounds rows up to blocks, for the planner, the store and the cache.
// Thread rule: pure functions; any thread. Errors: none; no overflow for any input.
#pragma once

#include <cstdint>

#include "format/reach.hpp"

namespace kvasir::format {

// Blocks that hold `rows` rows.
constexpr std::uint64_t blocks_for_rows(std::uint64_t rows, std::uint32_t block_tokens) {
  return rows / block_tokens + (rows % block_tokens != 0 ? 1 : 0);
}

// Most blocks that a sequence of at most `rows` rows holds at one time while its steps write up to `step` rows each (0 counts
// as 1): what the step's first row reaches, and the step's rows, wherever they lie in their blocks. A chunk that is a multiple
// of the block begins with a block; a window may begin with the last row of one.
constexpr std::uint64_t blocks_held(std::uint64_t rows, Reach reach, std::uint64_t step, std::uint32_t block_tokens) {
  const std::uint64_t all = blocks_for_rows(rows, block_tokens);
  if (reach.window == 0 || step >= rows) return all;
  const std::uint64_t stretch = std::uint64_t{reach.window} - 1 + (step == 0 ? 1 : step);
  const bool aligned = reach.chunked && reach.window % block_tokens == 0;
  const std::uint64_t held = aligned ? blocks_for_rows(stretch, block_tokens) : blocks_for_rows(stretch - 1, block_tokens) + 1;
  return held < all ? held : all;
}

}  // namespace kvasir::format
