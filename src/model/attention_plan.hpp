// How a step's attention is cut into work for the threads: planned once a step, used by every layer.
//
// A tile is some rows of one sequence and one KV head. Enough tiles: each is one item that walks all its spans in order.
// Too few for the threads (one long sequence decoding): each span of a tile is an item of its own, its result is kept,
// and the results are merged in span order afterwards. Both ways do the same operations in the same order.
//
// Thread rule: plan() on one thread; reading on any. After construction plan() allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"

namespace kvasir::model {

struct AttentionItem {
  std::uint32_t sequence = 0;      // of the step
  std::uint32_t kv_head = 0;
  std::uint32_t row_begin = 0;     // rows of that sequence
  std::uint32_t row_end = 0;
  std::uint32_t span_begin = 0;
  std::uint32_t span_end = 0;
  std::uint32_t first_line = 0;    // split plans: where its results lie, in lines
};

struct AttentionShape {
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  format::Reach reach = {};      // spans that it leaves behind are not visited
};

// What plans within some limits need room for.
struct AttentionSizes {
  std::uint32_t rows_per_tile = 0;
  std::size_t tile_lines = 0;    // of one tile
  std::size_t split_lines = 0;   // of all items of a split plan
  std::size_t tiles = 0, items = 0;
};
AttentionSizes attention_sizes(const AttentionShape& shape, std::uint32_t max_rows, std::uint32_t max_sequences,
                               std::uint32_t max_context, std::size_t threads);

struct PlannedSequence {
  std::uint32_t first_position = 0;
  std::uint32_t rows = 0;
};

class AttentionPlan {
 public:
  // Sized for steps of at most max_rows rows and max_sequences sequences with positions below max_context.
  AttentionPlan(const AttentionShape& shape, std::uint32_t max_rows, std::uint32_t max_sequences, std::uint32_t max_context,
                std::size_t threads);

  void plan(std::span<const PlannedSequence> sequences);

  // Work items; heavy ones first.
  std::span<const AttentionItem> items() const { return items_; }
  // Whether items are single spans whose results tiles() then merges.
  bool split() const { return split_; }
  // Split plans: one entry a tile, its spans' results at first_line + (span - span_begin) * lines.
  std::span<const AttentionItem> tiles() const { return tiles_; }

  std::uint32_t lines(const AttentionItem& item) const { return (item.row_end - item.row_begin) * (shape_.heads / shape_.kv_heads); }
  const AttentionSizes& sizes() const { return sizes_; }
  const AttentionShape& shape() const { return shape_; }

 private:
  void add_tiles(std::uint32_t sequence, const PlannedSequence& s);
  bool should_split() const;

  AttentionShape shape_;
  std::size_t threads_;
  AttentionSizes sizes_;
  bool split_ = false;
  std::vector<AttentionItem> tiles_, items_;
};

}  // namespace kvasir::model
