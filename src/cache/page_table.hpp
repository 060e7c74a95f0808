// Builds the page table of a step for one group: CSR int32, planned once a step and used by every layer.
// Thread rule: one owner builds; the view may be read by any thread until the next clear().
// Allocates at construction only.
#pragma once

#include <cstdint>
#include <memory>

#include "cache/block_table.hpp"
#include "format/block_layout.hpp"

namespace kvasir::cache {

class PageTable {
 public:
  // Room for `max_sequences` tables of at most `capacity_blocks` blocks each (KvCache::table_capacity).
  PageTable(std::uint32_t max_sequences, std::uint32_t capacity_blocks);

  void clear();
  // The next sequence of the step, as its table stands: the rows that this step writes are already reserved.
  // REQUIRES: at least one row, room for the sequence and its blocks.
  void add(const BlockTable& table);

  // Shapes: kv_indptr [sequences + 1], kv_indices [kv_indptr[sequences]], last_block_len and first_block [sequences].
  format::PageTableView view() const;

 private:
  std::uint32_t max_sequences_;
  std::uint64_t max_indices_;
  std::unique_ptr<std::int32_t[]> indptr_;
  std::unique_ptr<BlockId[]> indices_;
  std::unique_ptr<std::int32_t[]> last_block_len_, first_block_;
  std::uint32_t sequences_ = 0;
};

}  // namespace kvasir::cache
