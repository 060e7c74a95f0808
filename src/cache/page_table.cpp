#include "cache/page_table.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace kvasir::cache {

PageTable::PageTable(std::uint32_t max_sequences, std::uint32_t capacity_blocks)
    : max_sequences_(max_sequences),
      max_indices_(std::uint64_t{max_sequences} * capacity_blocks),
      indptr_(std::make_unique_for_overwrite<std::int32_t[]>(std::size_t{max_sequences} + 1)),
      indices_(std::make_unique_for_overwrite<BlockId[]>(max_indices_)),
      last_block_len_(std::make_unique_for_overwrite<std::int32_t[]>(max_sequences)),
      first_block_(std::make_unique_for_overwrite<std::int32_t[]>(max_sequences)) {
  KV_CHECK(max_sequences >= 1, "a page table has room for a sequence");
  clear();
}

void PageTable::clear() {
  sequences_ = 0;
  indptr_[0] = 0;
}

void PageTable::add(const BlockTable& table) {
  KV_CHECK(sequences_ < max_sequences_, "more sequences in a step than the page table has room for");
  KV_CHECK(table.rows() > 0, "a sequence of a step has at least one row");
  const std::int32_t begin = indptr_[sequences_];
  const std::uint64_t end = static_cast<std::uint64_t>(begin) + table.blocks();
  KV_CHECK(end <= max_indices_ && end <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()),
           "more blocks in a step than the page table has room for");
  std::ranges::copy(table.ids(), indices_.get() + begin);
  last_block_len_[sequences_] = static_cast<std::int32_t>(table.last_block_len());
  first_block_[sequences_] = static_cast<std::int32_t>(table.dropped());
  indptr_[++sequences_] = static_cast<std::int32_t>(end);
}

format::PageTableView PageTable::view() const {
  return {.kv_indptr = indptr_.get(),
          .kv_indices = indices_.get(),
          .last_block_len = last_block_len_.get(),
          .first_block = first_block_.get(),
          .sequences = static_cast<std::int32_t>(sequences_)};
}

}  // namespace kvasir::cache
