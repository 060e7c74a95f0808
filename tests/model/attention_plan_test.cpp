// How a step's attention is cut: spans that a reach leaves behind are not visited, every other one is, once.
#include "model/attention_plan.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/prng.hpp"

namespace kvasir::model {
namespace {

constexpr std::uint32_t kContext = 5000;

using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;   // sequence, head, row, span

// Visits of each row's spans by the plan's items.
std::map<Key, int> visits(const AttentionPlan& plan) {
  std::map<Key, int> out;
  for (const AttentionItem& item : plan.items())
    for (std::uint32_t row = item.row_begin; row < item.row_end; ++row)
      for (std::uint32_t span = item.span_begin; span < item.span_end; ++span) ++out[{item.sequence, item.kv_head, row, span}];
  return out;
}

void expect_whole(const AttentionPlan& plan, const AttentionShape& shape, const std::vector<PlannedSequence>& step) {
  const auto seen = visits(plan);
  for (const auto& [key, times] : seen) ASSERT_EQ(times, 1);
  for (std::uint32_t s = 0; s < step.size(); ++s)
    for (std::uint32_t row = 0; row < step[s].rows; ++row) {
      const std::uint32_t position = step[s].first_position + row;
      for (std::uint32_t span = shape.reach.first_key(position) / format::kSpanTokens; span <= position / format::kSpanTokens; ++span)
        for (std::uint32_t head = 0; head < shape.kv_heads; ++head) ASSERT_TRUE(seen.contains({s, head, row, span}));
    }
  // A span that no row of the item sees would have no maximum.
  for (const AttentionItem& item : plan.items()) {
    const std::uint32_t first = step[item.sequence].first_position + item.row_begin, last = step[item.sequence].first_position + item.row_end - 1;
    for (std::uint32_t span = item.span_begin; span < item.span_end; ++span) {
      bool any = false;
      for (std::uint32_t p = first; p <= last; ++p)
        any = any || (shape.reach.first_key(p) / format::kSpanTokens <= span && span <= p / format::kSpanTokens);
      ASSERT_TRUE(any) << "span " << span << " of rows at " << first << " to " << last;
    }
  }
}

TEST(AttentionPlan, VisitsWhatIsSeenOnceAndNothingElse) {
  PhiloxSequence random(3, 0xa7);
  for (const format::Reach reach : {format::Reach{}, {.window = 1}, {.window = 40}, {.window = 256}, {.window = 700}, {.window = 512, .chunked = true}})
    for (const std::size_t threads : {1u, 2u, 8u})
      for (int i = 0; i < 20; ++i) {
        const AttentionShape shape{.heads = 8, .kv_heads = 1u << random.below(4), .head_dim = 16, .reach = reach};
        AttentionPlan plan(shape, 400, 4, kContext, threads);
        std::vector<PlannedSequence> step(1 + random.below(4));
        for (PlannedSequence& s : step) {
          s.rows = 1 + random.below(100);
          s.first_position = random.below(kContext - s.rows);
        }
        plan.plan(step);
        expect_whole(plan, shape, step);
      }
}

TEST(AttentionPlan, AWindowBoundsTheSpansOfADecodeRow) {
  const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 16, .reach = {.window = 300}};
  AttentionPlan plan(shape, 8, 1, kContext, 1);
  const std::vector<PlannedSequence> step = {{.first_position = 4999, .rows = 1}};
  plan.plan(step);
  ASSERT_EQ(plan.items().size(), 2u);
  for (const AttentionItem& item : plan.items()) {
    EXPECT_EQ(item.span_begin, (4999u - 299) / 256);
    EXPECT_EQ(item.span_end, 4999u / 256 + 1);
  }
}

}  // namespace
}  // namespace kvasir::model
