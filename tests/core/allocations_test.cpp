// After its creation the core plans, applies, cancels and reserves rows without the heap.
#include <gtest/gtest.h>

#include <vector>

#include "cache/page_table.hpp"
#include "core/core.hpp"
#include "tests/cache/counting_new.hpp"

namespace kvasir::core {
namespace {

TEST(Allocations, TheCounterCounts) {
  const test::Allocations some = test::allocations_of([] { std::vector<int> v(100); });
  EXPECT_EQ(some.count, 1u);
  EXPECT_EQ(some.bytes, 100 * sizeof(int));
}

TEST(Allocations, CoreAllocatesExactlyWhatIsPlanned) {
  if (!test::kCountsAreExact) GTEST_SKIP() << "an instrumented build";
  for (const std::uint32_t scale : {1u, 7u}) {
    CoreConfig config;
    config.cache.groups = {{16, 40 * scale, 0}, {32, 20, 0}};
    config.cache.max_sequence_rows = 300;
    config.limits = {.max_num_seqs = 8 * scale, .max_num_batched_tokens = 64, .chunk_alignment = 16};
    config.max_requests = 64 * scale;
    const test::Allocations made = test::allocations_of([&] { EXPECT_TRUE(Core::create(config).ok()); });
    const std::uint64_t working_copy = config.cache.groups.size() * sizeof(cache::GroupConfig);  // of the configuration
    EXPECT_EQ(made.bytes, Core::metadata_bytes(config) + working_copy);
  }
}

TEST(Allocations, PlanApplyAndCancelUseNoHeap) {
  CoreConfig config;
  config.cache.groups = {{16, 40, 0}, {32, 20, 0}};
  config.cache.max_sequence_rows = 300;
  config.limits = {.max_num_seqs = 8, .max_num_batched_tokens = 64, .chunk_alignment = 16};
  config.limits.itl_target_s = 50e-3;
  config.policy.policy = sched::Policy::priority;
  config.max_requests = 64;
  Core core = Core::create(config).value();
  cache::PageTable pages(config.limits.max_num_seqs, core.cache().table_capacity(0));
  std::vector<TokenResult> results;
  results.reserve(config.limits.max_num_seqs);
  const std::vector<TokenId> prompt(90, 1);
  std::uint64_t waited = 0, cancelled = 0;
  for (int round = 0; round < 200; ++round) {
    while (core.submit({prompt, 30, round % 4}).ok()) {
    }
    const test::Allocations during = test::allocations_of([&] {
      const sched::StepPlan& plan = core.plan(0);
      waited += plan.waiting == sched::WaitReason::blocks ? 1 : 0;
      pages.clear();
      results.clear();
      for (const sched::Chunk& chunk : plan.chunks) {
        pages.add(core.cache().table(core.find(chunk.request)->sequence, 0));
        if (chunk.wants_logits) results.push_back({chunk.request, 3, round % 7 == 0});
      }
      if (round % 5 == 0) cancelled += core.cancel(plan.chunks.back().request) ? 1 : 0;
      round % 11 == 0 ? core.abandon() : core.apply(results, 0.02);
    });
    ASSERT_EQ(during.count, 0u) << "round " << round;
    while (!core.finished().empty()) core.forget(core.finished().front());
  }
  EXPECT_GT(waited, 0u) << "a head of the queue that has to wait costs nothing either";
  EXPECT_GT(cancelled, 0u);
}

}  // namespace
}  // namespace kvasir::core
