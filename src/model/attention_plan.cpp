#include "model/attention_plan.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kItemsPerThread = 4;   // fewer items than this a thread leave one of them idle too long

std::uint32_t spans_for(std::uint32_t keys) { return static_cast<std::uint32_t>(ceil_div(keys, format::kSpanTokens)); }

}  // namespace

AttentionPlan::AttentionPlan(const AttentionShape& shape, std::uint32_t max_rows, std::uint32_t max_sequences,
                             std::uint32_t max_context, std::size_t threads)
    : shape_(shape), threads_(threads) {
  const std::uint32_t group = shape.heads / shape.kv_heads;
  rows_per_tile_ = std::max(1u, static_cast<std::uint32_t>(kernels::kMaxAttentionLines) / group);
  const std::uint32_t spans = spans_for(max_context);
  const std::uint32_t few_tiles = kItemsPerThread * static_cast<std::uint32_t>(threads);
  // A plan is split only below few_tiles tiles, and only where it is small: four rows a tile at most.
  max_split_lines_ = (few_tiles + shape.kv_heads) * spans * group * 4;
  const std::size_t max_tiles = std::size_t{shape.kv_heads} * (ceil_div(max_rows, rows_per_tile_) + max_sequences);
  tiles_.reserve(max_tiles);
  items_.reserve(std::max<std::size_t>(max_tiles, std::size_t{few_tiles + shape.kv_heads} * spans));
}

void AttentionPlan::add_tiles(std::uint32_t sequence, const PlannedSequence& s) {
  for (std::uint32_t begin = 0; begin < s.rows; begin += rows_per_tile_) {
    const std::uint32_t end = std::min(s.rows, begin + rows_per_tile_);
    for (std::uint32_t head = 0; head < shape_.kv_heads; ++head)
      tiles_.push_back({.sequence = sequence, .kv_head = head, .row_begin = begin, .row_end = end, .span_begin = 0,
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
  return spans > tiles_.size() && lines_needed <= max_split_lines_;
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
      return std::uint64_t{a.span_end} * lines(a) > std::uint64_t{b.span_end} * lines(b);
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
  KV_CHECK(line <= max_split_lines_, "a split plan fits the buffer it was sized for");
}

}  // namespace kvasir::model
