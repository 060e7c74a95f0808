#include "model/attention_plan.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kItemsPerThread = 4;   // fewer items than this a thread leave one of them idle too long

std::uint32_t spans_for(std::uint32_t keys) { return static_cast<std::uint32_t>(ceil_div(keys, format::kSpanTokens)); }

}  // namespace

AttentionSizes attention_sizes(const AttentionShape& shape, std::uint32_t max_rows, std::uint32_t max_sequences,
                               std::uint32_t max_context, std::size_t threads) {
  AttentionSizes sizes;
  const std::size_t group = shape.heads / shape.kv_heads, spans = spans_for(max_context);
  sizes.rows_per_tile = std::max(1u, static_cast<std::uint32_t>(kernels::kMaxAttentionLines / group));
  sizes.tile_lines = sizes.rows_per_tile * group;
  // A plan is split only below few_tiles tiles, and only where it is small: four rows a tile at most.
  const std::size_t few_tiles = kItemsPerThread * threads;
  sizes.split_lines = (few_tiles + shape.kv_heads) * spans * group * 4;
  sizes.tiles = shape.kv_heads * (ceil_div(max_rows, sizes.rows_per_tile) + max_sequences);
  sizes.items = std::max(sizes.tiles, (few_tiles + shape.kv_heads) * spans);
  return sizes;
}

AttentionPlan::AttentionPlan(const AttentionShape& shape, std::uint32_t max_rows, std::uint32_t max_sequences,
                             std::uint32_t max_context, std::size_t threads)
    : shape_(shape), threads_(threads), sizes_(attention_sizes(shape, max_rows, max_sequences, max_context, threads)) {
  tiles_.reserve(sizes_.tiles);
  items_.reserve(sizes_.items);
}

void AttentionPlan::add_tiles(std::uint32_t sequence, const PlannedSequence& s) {
  for (std::uint32_t begin = 0; begin < s.rows; begin += sizes_.rows_per_tile) {
    const std::uint32_t end = std::min(s.rows, begin + sizes_.rows_per_tile);
    // The first row looks back furthest; each span from there on is seen by some row of the tile.
    const std::uint32_t span_begin = shape_.reach.first_key(s.first_position + begin) / format::kSpanTokens;
    for (std::uint32_t head = 0; head < shape_.kv_heads; ++head)
      tiles_.push_back({.sequence = sequence, .kv_head = head, .row_begin = begin, .row_end = end, .span_begin = span_begin,
                        .span_end = spans_for(s.first_position + end), .first_line = 0});
  }
}

bool AttentionPlan::should_split() const {
  if (threads_ == 1 || tiles_.size() >= kItemsPerThread * threads_) return false;
  std::size_t lines_needed = 0, spans = 0;
  for (const AttentionItem& tile : tiles_) {
    spans += tile.span_end - tile.span_begin;
    lines_needed += std::size_t{lines(tile)} * (tile.span_end - tile.span_begin);
  }
  return spans > tiles_.size() && lines_needed <= sizes_.split_lines;
}

void AttentionPlan::plan(std::span<const PlannedSequence> sequences) {
  tiles_.clear();
  items_.clear();
  for (std::uint32_t s = 0; s < sequences.size(); ++s) add_tiles(s, sequences[s]);
  split_ = should_split();
  if (!split_) {
    items_.insert(items_.end(), tiles_.begin(), tiles_.end());
    // Heaviest first, so that the last items to be handed out are short.
    std::sort(items_.begin(), items_.end(), [this](const AttentionItem& a, const AttentionItem& b) {
      return std::uint64_t{a.span_end - a.span_begin} * lines(a) > std::uint64_t{b.span_end - b.span_begin} * lines(b);
    });
    return;
  }
  std::uint32_t line = 0;
  for (AttentionItem& tile : tiles_) {
    tile.first_line = line;
    for (std::uint32_t span = tile.span_begin; span < tile.span_end; ++span) {
      AttentionItem item = tile;
      item.span_begin = span;
      item.span_end = span + 1;
      item.first_line = line;
      items_.push_back(item);
      line += lines(tile);
    }
  }
  KV_CHECK(line <= sizes_.split_lines, "a split plan fits the buffer it was sized for");
}

}  // namespace kvasir::model
