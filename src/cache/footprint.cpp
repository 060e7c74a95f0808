#include "cache/footprint.hpp"

#include "base/ids.hpp"
#include "cache/free_set.hpp"

namespace kvasir::cache {

std::uint64_t pool_metadata_bytes(std::uint32_t superpages, std::uint32_t blocks_per_superpage, bool shuffled) {
  const std::uint32_t blocks = superpages * blocks_per_superpage;
  std::uint64_t bytes = std::uint64_t{blocks} * (sizeof(std::uint32_t) + sizeof(std::uint8_t)) + FreeSet::bytes(blocks);
  if (shuffled) bytes += std::uint64_t{blocks} * 2 * sizeof(std::uint32_t);
  if (superpages > 1) bytes += FreeSet::bytes(blocks);
  return bytes + superpages * (sizeof(std::uint32_t) + sizeof(std::uint8_t));
}

std::uint64_t superpage_metadata_bytes(std::uint32_t superpages) { return FreeSet::bytes(superpages); }

std::uint64_t table_metadata_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks) {
  return std::uint64_t{max_sequences} * capacity_blocks * sizeof(BlockId);
}

std::uint64_t page_table_bytes(std::uint32_t max_sequences, std::uint32_t capacity_blocks) {
  return table_metadata_bytes(max_sequences, capacity_blocks) +
         (std::uint64_t{max_sequences} + 1 + 2 * std::uint64_t{max_sequences}) * sizeof(std::int32_t);
}

}  // namespace kvasir::cache
