// Known faults of other engines, as far as admission, scheduling and accounting decide them. Numbers are those of the
// project's collection of public reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/core.hpp"
#include "tests/support/admission_cases.hpp"

namespace kvasir::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Section c, scheduling: B22, B23 and B25, below. B13, B14 and B19 of section b are about accounting; B41 is of e.
struct Setup {
  std::uint32_t blocks = 4, block_tokens = 16, reserved = 0;
  std::uint64_t context = 4096;
  std::uint32_t max_num_seqs = 8, max_num_batched_tokens = 64, max_requests = 512;
  sched::QueuePolicy policy = {};
  QueueLimits queue = {};
};

Core make(const Setup& s) {
  CoreConfig config;
  config.cache.groups = {{s.block_tokens, s.blocks, s.reserved}};
  config.cache.max_sequence_rows = s.context;
  config.limits = {s.max_num_seqs, s.max_num_batched_tokens, 1};
  config.max_requests = s.max_requests;
  config.policy = s.policy;
  config.queue = s.queue;
  return Core::create(config).value();
}

Result<RequestId> submit(Core& core, std::size_t prompt, std::uint64_t max_new) {
  return core.submit({std::vector<TokenId>(prompt, 1), max_new});
}

// One whole step; every sampled token is 2 and none stops.
void finish_step(Core& core) {
  std::vector<TokenResult> results;
  for (const sched::Chunk& chunk : core.current_plan().chunks)
    if (chunk.wants_logits) results.push_back({chunk.request, 2, false});
  core.apply(results);
  core.check_invariants();
}

void step(Core& core) {
  if (!core.plan(0).empty()) finish_step(core);
  core.check_invariants();
}

void run_to_end(Core& core, int most_steps = 10'000) {
  while (!core.idle() && most_steps-- > 0) step(core);
  ASSERT_TRUE(core.idle());
}

void expect_flushed(const Core& core) {
  const cache::GroupStats stats = core.cache().stats(0);
  EXPECT_EQ(stats.pool.free, stats.pool.total);
  EXPECT_EQ(stats.claimed, 0u);
  EXPECT_EQ(core.cache().sequences(), 0u);
  EXPECT_EQ(core.stats().running + core.stats().queued, 0u);
}

TEST(KnownFaults, B13DroppedStreamsLeakNothing) {
  Core core = make({.blocks = 40, .max_num_seqs = 10});
  for (int i = 0; i < 300; ++i) {
    const RequestId id = submit(core, 50, 10).value();
    if (i % 3 == 1) core.plan(0);  // dropped with its first chunk in flight
    if (i % 3 == 2) step(core);    // dropped after its first chunk
    EXPECT_TRUE(core.cancel(id));  // or while queued
    if (core.step_in_flight()) finish_step(core);
    EXPECT_EQ(core.find(id)->reason, FinishReason::cancelled);
    expect_flushed(core);
    core.forget(id);
  }
  const RequestId last = submit(core, 50, 10).value();
  run_to_end(core);
  EXPECT_EQ(core.find(last)->reason, FinishReason::length);
  EXPECT_EQ(core.find(last)->generated(), 10u);
  expect_flushed(core);
}

TEST(KnownFaults, B14BlocksOfAnAbortedRequestAreNotReusedWhileItsStepRuns) {
  Core core = make({.blocks = 4});
  const RequestId a = submit(core, 40, 8).value();
  core.plan(0);
  const SequenceId sequence = core.find(a)->sequence;
  const auto held = core.cache().table(sequence, 0).ids();
  const std::set<BlockId> late_writes(held.begin(), held.end());
  EXPECT_TRUE(core.cancel(a));
  EXPECT_TRUE(core.cancel(a)) << "twice is no error";
  const RequestId b = submit(core, 60, 4).value();
  EXPECT_EQ(core.find(a)->state, RequestState::prefilling) << "the step in flight may still write";
  for (const BlockId block : late_writes) EXPECT_EQ(core.cache().stats(0).pool.active, late_writes.size()) << block;
  core.check_invariants();
  finish_step(core);
  EXPECT_EQ(core.find(a)->reason, FinishReason::cancelled);
  EXPECT_EQ(core.find(a)->generated(), 0u) << "the late token is dropped";
  EXPECT_EQ(core.cache().stats(0).pool.free, 4u) << "the wait ends with the step";
  run_to_end(core);
  EXPECT_EQ(core.find(b)->reason, FinishReason::length);
  expect_flushed(core);
}

TEST(KnownFaults, B19TheLimitIsExact) {
  for (const test::AdmissionCase& c : test::kFourBlocksOfSixteen) {
    Core core = make({.blocks = 4});
    const Result<RequestId> id = submit(core, c.prompt, c.max_new);
    ASSERT_EQ(id.ok(), c.fits) << c.prompt << "+" << c.max_new;
    if (!id.ok()) {
      EXPECT_EQ(id.error().code, ErrorCode::does_not_fit);
      EXPECT_THAT(id.error().message, AllOf(HasSubstr("5 KV blocks"), HasSubstr("4 are usable")));
      continue;
    }
    run_to_end(core);
    EXPECT_EQ(core.find(*id)->reason, FinishReason::length);
    EXPECT_EQ(core.find(*id)->generated(), c.max_new);
    expect_flushed(core);
  }
}

TEST(KnownFaults, B22WhatNeverFitsIsRefusedAtOnceAndTheNextIsServed) {
  Core core = make({.blocks = 8, .reserved = 1, .context = 256});
  for (const std::size_t prompt : {113u, 130u}) {
    const Result<RequestId> refused = submit(core, prompt, 1);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::does_not_fit);
    EXPECT_THAT(refused.error().message, HasSubstr("7 are usable"));
  }
  const RequestId served = submit(core, 10, 3).value();
  run_to_end(core);
  EXPECT_EQ(core.find(served)->generated(), 3u);
  EXPECT_EQ(core.stats().refused.total(), 2u);
}

TEST(KnownFaults, B22NorDoesItTakeAPlaceInTheQueue) {
  Core core = make({.blocks = 8, .reserved = 1, .context = 256, .queue = {1, 100}});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(submit(core, 130, 1).error().code, ErrorCode::does_not_fit);
  EXPECT_EQ(core.stats().refused.of(RefusalReason::never_fits), 50u);
  EXPECT_EQ(core.stats().queued_tokens, 0u);
  const RequestId served = submit(core, 10, 3).value();
  EXPECT_EQ(submit(core, 130, 1).error().code, ErrorCode::does_not_fit) << "hopeless, not busy: whatever waits";
  EXPECT_EQ(submit(core, 10, 3).error().code, ErrorCode::exhausted);
  run_to_end(core);
  EXPECT_EQ(core.find(served)->generated(), 3u);
}

TEST(KnownFaults, B23TheOnlyRequestIsRefusedNotPreemptedForEver) {
  Core core = make({.blocks = 6, .max_num_batched_tokens = 16});
  const Result<RequestId> refused = submit(core, 40, 200);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("15 KV blocks"), HasSubstr("6 are usable")));
  const RequestId second = submit(core, 40, 20).value();
  run_to_end(core, 30);
  EXPECT_EQ(core.find(second)->generated(), 20u);
}

TEST(KnownFaults, B25TheLargeRequestStartsAsSoonAsItFits) {  // first come: the small ones wait their turn
  Core core = make({.blocks = 20, .max_num_batched_tokens = 512});
  const RequestId holder = submit(core, 15 * 16 - 3, 4).value();
  step(core);
  EXPECT_EQ(core.cache().stats(0).pool.free, 5u);
  const RequestId large = submit(core, 12 * 16, 1).value();
  std::vector<RequestId> small;
  for (int i = 0; i < 10; ++i) small.push_back(submit(core, 4, 1).value());
  EXPECT_EQ(core.plan(0).waiting, sched::WaitReason::blocks);
  EXPECT_EQ(core.current_plan().head.wanted, 12u);
  EXPECT_EQ(core.current_plan().head.have, 5u);
  finish_step(core);
  while (core.find(holder)->state != RequestState::finished) {
    EXPECT_EQ(core.find(large)->state, RequestState::queued);
    step(core);
    submit(core, 4, 1).value();  // small ones without end
  }
  EXPECT_FALSE(core.plan(0).admitted.empty());
  EXPECT_EQ(core.current_plan().admitted.front(), large) << "the very next step after its blocks came back";
  finish_step(core);
  run_to_end(core);
  for (const RequestId id : small) EXPECT_EQ(core.find(id)->reason, FinishReason::length);
}

// The other half, with priorities: more urgent small requests may pass, yet only those that come within the large one's
// bound after it. From then on everybody waits behind it, and it starts.
TEST(KnownFaults, B25UrgentSmallOnesMayPassTheLargeOneWithinABound) {
  constexpr std::uint64_t kAgeing = 1000;
  Core core = make({.blocks = 20, .max_num_batched_tokens = 512, .policy = {sched::Policy::priority, kAgeing}});
  const auto arrive = [&core](std::size_t prompt, std::uint64_t max_new, std::int32_t priority, std::uint64_t now) {
    return core.submit({std::vector<TokenId>(prompt, 1), max_new, priority, now}).value();
  };
  const RequestId holder = arrive(15 * 16 - 39, 40, 0, 0);
  step(core);
  EXPECT_EQ(core.cache().stats(0).pool.free - core.cache().stats(0).claimed, 5u);
  const RequestId large = arrive(12 * 16 - 3, 4, 2, 1);  // waits for the holder's blocks
  std::vector<RequestId> small;
  std::uint64_t now = 1, passed = 0, steps_with_room = 0;
  while (core.find(large)->state == RequestState::queued) {
    if (core.find(holder)->state == RequestState::finished) ++steps_with_room;
    ASSERT_LE(steps_with_room, 1u) << "it starts in the very next step after its blocks came back";
    now += kAgeing / 5;
    small.push_back(arrive(4, 4, 0, now));  // small ones without end, two levels more urgent
    step(core);
    if (core.find(small.back())->state != RequestState::queued) {
      ++passed;
      EXPECT_LE(now, 1 + 2 * kAgeing) << "nobody passes who came later than the bound";
    }
  }
  EXPECT_GT(passed, 0u) << "the small ones do not wait for nothing";
  EXPECT_GT(now, 1 + 2 * kAgeing) << "or the bound was not at work";
  run_to_end(core);
  EXPECT_EQ(core.find(large)->generated(), 4u);
  for (const RequestId id : small) EXPECT_EQ(core.find(id)->generated(), 4u);
}

TEST(KnownFaults, B41AnOverLongPromptIsAlwaysRefusedTheSameWay) {
  Core core = make({.blocks = 100, .context = 64});
  const auto refusal = [&core](std::size_t prompt, std::uint64_t max_new) {
    const Result<RequestId> id = submit(core, prompt, max_new);
    return id.ok() ? std::string("accepted") : id.error().message;
  };
  for (int busy = 0; busy < 2; ++busy) {
    EXPECT_EQ(refusal(63, 1), "accepted");
    EXPECT_EQ(refusal(64, 1), "accepted");
    EXPECT_THAT(refusal(65, 1), AllOf(HasSubstr("needs 65 token rows"), HasSubstr("holds 64")));
    EXPECT_THAT(refusal(200, 1), AllOf(HasSubstr("needs 200 token rows"), HasSubstr("holds 64")));
    EXPECT_THAT(refusal(60, 10), AllOf(HasSubstr("needs 69 token rows"), HasSubstr("holds 64")));
    EXPECT_THAT(refusal(1, ~0ull), HasSubstr("holds 64"));
    step(core);
  }
}

}  // namespace
}  // namespace kvasir::core
