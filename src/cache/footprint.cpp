#include "cache/footprint.hpp"

#include "base/ids.hpp"
#include "cache/free_set.hpp"

namespace kvasir::cache {

std::uint64_t pool_metadata_bytes(std::uint32_t blocks, bool shuffled) {
  const std::uint64_t per_block =
      sizeof(std::uint32_t) + sizeof(std::uint8_t) + (shuffled ? 2 * sizeof(std::uint32_t) : 0);
  return blocks * per_block + FreeSet::bytes(blocks);
}

std::uint64_t table_metadata_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks) {
  return std::uint64_t{max_sequences} * capacity_blocks * sizeof(BlockId);
}

std::uint64_t page_table_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks) {
  return table_metadata_bytes(max_sequences, capacity_blocks) +
         (std::uint64_t{max_sequences} + 1 + 2 * std::uint64_t{max_sequences}) * sizeof(std::int32_t);
}

}  // namespace kvasir::cache
