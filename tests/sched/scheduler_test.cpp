#include "sched/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.hpp"

namespace kvasir::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RequestId id(std::uint64_t value) { return RequestId(value); }

cache::AdmissionBudget budget_of(std::uint64_t blocks, std::uint64_t slots = 100) {
  cache::AdmissionBudget budget(10'000, slots);
  budget.add_group({.block_tokens = 16, .available = blocks, .total = 20});
  return budget;
}

// A request's `computed` rows of `known` tokens; the state holds views, so the lists live here.
struct Scene {
  std::vector<RunningRequest> running;
  std::vector<QueuedRequest> queued;
  cache::AdmissionBudget budget = budget_of(20);
  Limits limits{.max_num_seqs = 4, .max_num_batched_tokens = 32, .chunk_alignment = 1};
  CostCoefficients cost;

  StepPlan plan() const {
    StepPlan out;
    sched::plan({running, queued, budget, limits, cost}, 7, out);
    return out;
  }
};

TEST(Scheduler, DecodeRowsComeFirstThenPromptsThenTheQueue) {
  Scene s;
  s.running = {{id(1), 10, 30, false}, {id(2), 5, 6, true}};
  s.queued = {{id(3), 40, 40}};
  const StepPlan plan = s.plan();
  EXPECT_THAT(plan.chunks,
              ElementsAre(Chunk{id(2), 5, 1, true}, Chunk{id(1), 10, 20, true}, Chunk{id(3), 0, 11, false}));
  EXPECT_THAT(plan.admitted, ElementsAre(id(3)));
  EXPECT_EQ(plan.work.decode_rows, 1u);
  EXPECT_EQ(plan.work.prefill_rows, 31u);
  EXPECT_EQ(plan.now_us, 7u);
}

TEST(Scheduler, UnfinishedChunksEndAtTheAlignment) {
  Scene s;
  s.limits.chunk_alignment = 16;
  s.running = {{id(1), 5, 6, true}, {id(2), 3, 100, false}};
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 5, 1, true}, Chunk{id(2), 3, 29, false}))
      << "31 rows are left; position 32 is the last multiple of 16 in reach";
  s.running[1].computed = 16;
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 5, 1, true}, Chunk{id(2), 16, 16, false}));
}

TEST(Scheduler, AlignmentNeverStopsProgress) {
  Scene s;
  s.limits = {.max_num_seqs = 4, .max_num_batched_tokens = 16, .chunk_alignment = 16};
  s.running = {{id(1), 5, 6, true}, {id(2), 32, 100, false}};
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 5, 1, true}, Chunk{id(2), 32, 15, false}));
}

TEST(Scheduler, PromptWithoutOutputWantsNoLogits) {
  Scene s;
  s.queued = {{id(1), 8, 8, false}};
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 0, 8, false}));
}

TEST(Scheduler, HeadOfTheQueueBlocksThoseBehindIt) {
  Scene s;
  s.budget = budget_of(5);
  s.queued = {{id(1), 12 * 16, 12 * 16}, {id(2), 1, 1}};
  const StepPlan plan = s.plan();
  EXPECT_THAT(plan.chunks, IsEmpty());
  EXPECT_EQ(plan.waiting, WaitReason::blocks);
  EXPECT_EQ(plan.head, (cache::FitVerdict{cache::Fit::exhausted, 0, 12, 5}));
}

TEST(Scheduler, EveryReasonToWaitIsTold) {
  Scene s;
  s.queued = {{id(9), 1, 1}};
  s.limits.max_num_seqs = 1;
  s.running = {{id(1), 5, 6, true}};
  EXPECT_EQ(s.plan().waiting, WaitReason::sequence_limit);
  s.limits.max_num_seqs = 4;
  s.budget = budget_of(20, 0);
  EXPECT_EQ(s.plan().waiting, WaitReason::sequence_limit);
  s.budget = budget_of(20);
  EXPECT_EQ(s.plan().waiting, WaitReason::none);
  s.running = {{id(1), 0, 50, false}};
  EXPECT_EQ(s.plan().waiting, WaitReason::token_budget);
  s.running.clear();
  s.queued = {{id(9), 21 * 16, 1}};
  EXPECT_EQ(s.plan().waiting, WaitReason::never_fits);
}

TEST(Scheduler, OneStepAdmitsWithinOneBudget) {
  Scene s;
  s.budget = budget_of(3);
  s.queued = {{id(1), 32, 4}, {id(2), 16, 4}, {id(3), 1, 1}};
  EXPECT_THAT(s.plan().admitted, ElementsAre(id(1), id(2)));
}

TEST(Scheduler, LimitsThatCannotWorkAreRefused) {
  EXPECT_TRUE(validate(Limits{}).ok());
  EXPECT_THAT(validate({.max_num_seqs = 0}).error().message, HasSubstr("max_num_seqs = 0"));
  EXPECT_THAT(validate({.max_num_seqs = 8, .max_num_batched_tokens = 7}).error().message,
              HasSubstr("max_num_batched_tokens = 7"));
  EXPECT_THAT(validate({.max_num_seqs = 8, .max_num_batched_tokens = 8, .chunk_alignment = 0}).error().message,
              HasSubstr("chunk_alignment = 0"));
  EXPECT_THAT(validate({.max_num_seqs = 8, .max_num_batched_tokens = 8, .chunk_alignment = 9}).error().message,
              HasSubstr("chunk_alignment = 9"));
  EXPECT_THAT(validate({.itl_target_s = -0.1}).error().message, HasSubstr("itl_target_s = -0.1"));
  EXPECT_THAT(validate({.itl_target_s = 61}).error().message, HasSubstr("valid are 0 (no target) to 60"));
  EXPECT_THAT(validate({.min_chunk = 0}).error().message, HasSubstr("min_chunk = 0"));
}

// A machine on which a step takes 10 ms and 1 ms a row: beside two decode rows the target leaves 38 rows.
Scene timed_scene() {
  Scene s;
  s.limits = {.max_num_seqs = 8, .max_num_batched_tokens = 512, .itl_target_s = 50e-3, .min_chunk = 16};
  s.cost = {.fixed = 10e-3, .decode_row = 1e-3, .prefill_row = 1e-3};
  s.budget = budget_of(20);
  s.running = {{id(1), 9, 10, true}, {id(2), 9, 10, true}};
  return s;
}

TEST(ItlTarget, BesideStreamsAChunkFillsTheStepToTheTarget) {
  Scene s = timed_scene();
  s.running.push_back({id(3), 0, 300, false});
  const StepPlan plan = s.plan();
  EXPECT_EQ(plan.chunks.back(), (Chunk{id(3), 0, 38, false}));
  EXPECT_EQ(plan.work, (StepWork{.decode_rows = 2, .prefill_rows = 38, .decode_keys = 20, .prefill_keys = 741}));
  EXPECT_DOUBLE_EQ(plan.predicted_s, 50e-3);
}

TEST(ItlTarget, ChunksShrinkAsThePromptsHistoryGrows) {
  Scene s = timed_scene();
  s.cost.prefill_key = 1e-6;
  s.running.push_back({id(3), 0, 4000, false});
  const std::uint32_t early = s.plan().chunks.back().token_count;
  s.running.back().computed = 1000;
  const StepPlan late = s.plan();
  EXPECT_LT(late.chunks.back().token_count, early);
  EXPECT_LE(late.predicted_s, 50e-3);
}

TEST(ItlTarget, WithNothingDecodingItDoesNotBind) {
  Scene s = timed_scene();
  s.running = {{id(3), 0, 300, false}, {id(4), 0, 300, false}};
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(3), 0, 300, true}, Chunk{id(4), 0, 212, false}));
}

TEST(ItlTarget, ZeroMeansTheTokenBudgetAlone) {
  Scene s = timed_scene();
  s.limits.itl_target_s = 0;
  s.running.push_back({id(3), 0, 900, false});
  EXPECT_EQ(s.plan().chunks.back(), (Chunk{id(3), 0, 510, false}));
}

TEST(ItlTarget, TheFirstPromptAlwaysAdvances) {
  Scene s = timed_scene();
  s.cost.fixed = 1;  // every step is too slow already
  s.running.push_back({id(3), 0, 300, false});
  s.running.push_back({id(4), 0, 300, false});
  s.queued = {{id(5), 10, 10}};
  const StepPlan plan = s.plan();
  EXPECT_THAT(plan.chunks, ElementsAre(Chunk{id(1), 9, 1, true}, Chunk{id(2), 9, 1, true}, Chunk{id(3), 0, 16, false}));
  EXPECT_EQ(plan.waiting, WaitReason::step_time);
  s.running.resize(2);
  EXPECT_THAT(s.plan().admitted, ElementsAre(id(5))) << "nor does the head of the queue wait for ever";
  s.queued = {{id(5), 40, 40}, {id(6), 1, 1}};
  EXPECT_THAT(s.plan().chunks.back(), (Chunk{id(5), 0, 16, false}));
}

TEST(ItlTarget, PromptsGetTheirShareOfAStep) {
  Scene s = timed_scene();
  s.cost.decode_row = 10e-3;  // 30 ms for the streams: 66.7 of which 55 % are a prompt's
  s.running.push_back({id(3), 0, 20, false});
  s.running.push_back({id(4), 0, 300, false});
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 9, 1, true}, Chunk{id(2), 9, 1, true}, Chunk{id(3), 0, 20, true},
                                           Chunk{id(4), 0, 16, false}));
}

TEST(ItlTarget, TheFirstPromptStretchesAStepNoFurtherThanItMay) {
  Scene s = timed_scene();
  s.cost = {.fixed = 10e-3, .decode_row = 19e-3, .prefill_row = 4.9e-3};  // 48 ms for the streams: nothing fits
  s.running.push_back({id(3), 0, 300, false});
  EXPECT_EQ(s.plan().chunks.back(), (Chunk{id(3), 0, 7, false})) << "85 ms are 1.7 targets";
  s.cost.decode_row = 45e-3;  // 100 ms for the streams alone: 70 more
  EXPECT_EQ(s.plan().chunks.back(), (Chunk{id(3), 0, 14, false}));
  s.cost.prefill_row = 1;
  EXPECT_EQ(s.plan().chunks.back(), (Chunk{id(3), 0, 1, false})) << "one row at least";
}

TEST(ItlTarget, AChunkTooSmallToPayIsLeftOut) {
  Scene s = timed_scene();
  s.running.push_back({id(3), 0, 30, false});
  s.running.push_back({id(4), 0, 300, false});    // 8 rows would fit
  s.running.push_back({id(5), 100, 104, false});  // its last 4 rows are worth it
  EXPECT_THAT(s.plan().chunks, ElementsAre(Chunk{id(1), 9, 1, true}, Chunk{id(2), 9, 1, true},
                                           Chunk{id(3), 0, 30, true}, Chunk{id(5), 100, 4, true}));
}

TEST(ItlTarget, ADecodeStepBeyondTheTargetStillHasEveryStream) {
  Scene s = timed_scene();
  s.cost.decode_row = 1;
  EXPECT_EQ(s.plan().work.decode_rows, 2u);
  EXPECT_GT(s.plan().predicted_s, 2);
}

// The naive twin hands out the step's tokens one at a time: to decoding requests, then to the first prompt that has
// tokens left, running ones before queued ones.
std::vector<Chunk> naive_plan(const Scene& s) {
  std::vector<Chunk> chunks;
  std::uint32_t left = s.limits.max_num_batched_tokens;
  for (const RunningRequest& r : s.running)
    if (r.decoding) chunks.push_back({r.id, r.computed, 1, r.wants_logits}), --left;
  std::vector<RunningRequest> prompts;
  std::ranges::copy_if(s.running, std::back_inserter(prompts), [](const RunningRequest& r) { return !r.decoding; });
  cache::AdmissionBudget budget = s.budget;
  std::size_t admitted = s.running.size();
  for (const QueuedRequest& q : s.queued) {
    if (admitted++ >= s.limits.max_num_seqs || !budget.check({q.bound_rows, q.prompt_tokens}).ok()) break;
    budget.take({q.bound_rows, q.prompt_tokens});
    prompts.push_back({q.id, 0, q.prompt_tokens, false, q.wants_logits});
  }
  for (const RunningRequest& r : prompts)
    for (std::uint32_t position = r.computed; position < r.known && left > 0; ++position, --left) {
      if (position == r.computed) chunks.push_back({r.id, r.computed, 0, false});
      chunks.back().token_count += 1;
      chunks.back().wants_logits = r.wants_logits && position + 1 == r.known;
    }
  return chunks;
}

Scene random_scene(std::uint64_t seed) {
  PhiloxSequence random(seed);
  Scene s;
  s.limits.max_num_seqs = 1 + random.below(8);
  s.limits.max_num_batched_tokens = s.limits.max_num_seqs + random.below(60);
  s.limits.chunk_alignment = 1;
  s.budget = budget_of(random.below(20), random.below(9));
  std::uint64_t next = 0;
  for (std::uint32_t i = random.below(s.limits.max_num_seqs + 1); i > 0; --i) {
    const std::uint32_t computed = random.below(50);
    const bool decoding = random.below(2) == 0;
    s.running.push_back(
        {id(next++), computed, computed + (decoding ? 1 : 1 + random.below(40)), decoding, random.below(4) != 0});
  }
  for (std::uint32_t i = random.below(6); i > 0; --i) {
    const std::uint32_t prompt = 1 + random.below(60);
    s.queued.push_back({id(next++), prompt + random.below(100), prompt, random.below(4) != 0});
  }
  return s;
}

TEST(Scheduler, RandomStatesAgreeWithTheNaiveTwin) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Scene s = random_scene(seed);
    ASSERT_EQ(s.plan().chunks, naive_plan(s)) << "seed " << seed;
  }
}

TEST(Scheduler, EveryPlanKeepsItsLimitsAndIsRepeatable) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Scene s = random_scene(seed);
    s.limits.chunk_alignment = std::min(s.limits.max_num_batched_tokens, 1u << (seed % 6));
    const StepPlan plan = s.plan();
    EXPECT_EQ(s.plan().chunks, plan.chunks);
    EXPECT_LE(plan.work.rows(), s.limits.max_num_batched_tokens);
    EXPECT_LE(s.running.size() + plan.admitted.size(), s.limits.max_num_seqs);
    std::uint32_t rows = 0;
    for (const Chunk& chunk : plan.chunks) {
      rows += chunk.token_count;
      EXPECT_GT(chunk.token_count, 0u);
    }
    EXPECT_EQ(rows, plan.work.rows());
    EXPECT_TRUE(s.running.empty() || !plan.empty()) << "a running request always advances";
  }
}

// What the target promises, over random states and machines: the limit is kept whenever more than the first chunk's
// minimum is planned beside decode rows; no step could have held another row of the prompt it cut.
TEST(ItlTarget, RandomStepsKeepItAndWasteNothing) {
  int bound = 0, stretched = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Scene s = random_scene(seed);
    PhiloxSequence random(seed, 1);
    s.limits.max_num_batched_tokens += 100;
    s.limits.itl_target_s = 1e-3 * (1 + random.below(100));
    s.limits.min_chunk = 1 + random.below(20);
    s.cost = {1e-3 * random.below(30), 1e-3 * random.uniform(), 1e-3 * random.uniform(), 1e-6 * random.below(10),
              1e-6 * random.below(5)};
    const StepPlan plan = s.plan();
    EXPECT_DOUBLE_EQ(plan.predicted_s, plan.empty() ? 0 : s.cost.predict(plan.work));
    const bool prompts = std::ranges::any_of(s.running, [](const RunningRequest& r) { return !r.decoding; });
    if (prompts) {
      EXPECT_GT(plan.work.prefill_rows, 0u) << seed;
    }
    if (plan.work.decode_rows == 0) continue;
    StepWork streams = plan.work;
    streams.prefill_rows = 0;
    streams.prefill_keys = 0;
    const double target = s.limits.itl_target_s, alone = s.cost.predict(streams);
    const double limit = std::clamp(alone / (1 - kPromptShare), target, kMostStretch * target);
    if (plan.work.prefill_rows > 1) {
      ASSERT_LE(plan.predicted_s, kMostStretch * std::max(target, alone)) << seed;
    }
    if (plan.work.prefill_rows <= s.limits.min_chunk) {
      stretched += plan.predicted_s > limit && plan.work.prefill_rows > 0 ? 1 : 0;
      continue;
    }
    ++bound;
    ASSERT_LE(plan.predicted_s, limit) << seed;
    const Chunk& last = plan.chunks.back();
    const auto running = std::ranges::find(s.running, last.request, &RunningRequest::id);
    const auto queued = std::ranges::find(s.queued, last.request, &QueuedRequest::id);
    const std::uint32_t known = running != s.running.end() ? running->known : queued->prompt_tokens;
    const std::uint32_t end = last.first_position + last.token_count;
    if (end < known && plan.work.rows() < s.limits.max_num_batched_tokens) {
      StepWork more = plan.work;
      more.add_prefill(end, 1);
      ASSERT_GT(s.cost.predict(more), limit) << seed;
    }
  }
  EXPECT_GT(bound, 300);
  EXPECT_GT(stretched, 100);
}

}  // namespace
}  // namespace kvasir::sched
