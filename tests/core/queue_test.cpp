// What may wait, in which order, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/core.hpp"

namespace kvasir::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CoreConfig config_of(QueueLimits queue, sched::QueuePolicy policy = {}) {
  CoreConfig config;
  config.cache.groups = {{16, 8, 0}};
  config.cache.max_sequence_rows = 100;
  config.limits = {.max_num_seqs = 2, .max_num_batched_tokens = 64};
  config.max_requests = 8;
  config.queue = queue;
  config.policy = policy;
  return config;
}

struct Asked {
  std::size_t prompt = 10;
  std::uint64_t max_new = 5;
  std::int32_t priority = 0;
  std::uint64_t arrived_us = 0;
};

Result<RequestId> submit(Core& core, Asked asked) {
  const std::vector<TokenId> prompt(asked.prompt, 1);
  return core.submit({prompt, asked.max_new, asked.priority, asked.arrived_us});
}

SubmitVerdict verdict(const Core& core, Asked asked) {
  const std::vector<TokenId> prompt(asked.prompt, 1);
  return core.can_submit({prompt, asked.max_new, asked.priority, asked.arrived_us});
}

void step(Core& core, double seconds = 0, bool stop = false) {
  if (core.plan(0).empty()) return;
  std::vector<TokenResult> results;
  for (const sched::Chunk& chunk : core.current_plan().chunks)
    if (chunk.wants_logits) results.push_back({chunk.request, 2, stop});
  core.apply(results, seconds);
  core.check_invariants();
}

TEST(Queue, RequestsBeyondItsLengthAreRefusedWithBothNumbers) {
  Core core = Core::create(config_of({.max_queued_requests = 3})).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(submit(core, {}).ok());
  const SubmitVerdict v = verdict(core, {});
  EXPECT_EQ(v.reason, RefusalReason::queue_requests);
  EXPECT_EQ(v.wanted, 4u);
  EXPECT_EQ(v.have, 3u);
  const Result<RequestId> refused = submit(core, {});
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(refused.error().message, "with this request 4 would wait, and max_queued_requests = 3");
  step(core);  // two are admitted
  EXPECT_TRUE(submit(core, {}).ok()) << "the place is given back on admission";
  EXPECT_TRUE(submit(core, {}).ok());
  EXPECT_FALSE(submit(core, {}).ok());
  EXPECT_EQ(core.stats().refused.of(RefusalReason::queue_requests), 2u);
  EXPECT_EQ(core.stats().refused.total(), 2u);
}

TEST(Queue, PromptTokensBeyondItsLimitAreRefusedWithBothNumbers) {
  Core core = Core::create(config_of({.max_queued_tokens = 60})).value();
  const RequestId first = submit(core, {.prompt = 40}).value();
  ASSERT_TRUE(submit(core, {.prompt = 20}).ok());
  EXPECT_EQ(core.stats().queued_tokens, 60u);
  const Result<RequestId> refused = submit(core, {.prompt = 1});
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(refused.error().message, "with this request 61 prompt tokens would wait, and max_queued_tokens = 60");
  EXPECT_EQ(core.stats().refused.of(RefusalReason::queue_tokens), 1u);
  core.cancel(first);
  EXPECT_EQ(core.stats().queued_tokens, 20u) << "given back when it ends";
  EXPECT_TRUE(submit(core, {.prompt = 40}).ok());
  core.check_invariants();
}

TEST(Queue, APromptLongerThanTheTokenLimitIsTakenWhereNoneWaits) {
  Core core = Core::create(config_of({.max_queued_tokens = 60})).value();
  EXPECT_TRUE(submit(core, {.prompt = 90}).ok());
  EXPECT_EQ(verdict(core, {.prompt = 1}).reason, RefusalReason::queue_tokens);
}

TEST(Queue, WhatCanNeverBeTakenIsToldFirst) {
  CoreConfig config = config_of({.max_queued_requests = 1});
  config.cache.max_sequence_rows = 200;
  Core core = Core::create(config).value();
  ASSERT_TRUE(submit(core, {}).ok());
  const SubmitVerdict large = verdict(core, {.prompt = 129});
  EXPECT_EQ(large.reason, RefusalReason::never_fits);
  EXPECT_EQ(large.wanted, 9u);
  EXPECT_EQ(large.have, 8u);
  EXPECT_TRUE(is_permanent(large.reason));
  const SubmitVerdict lengthy = verdict(core, {.prompt = 201});
  EXPECT_EQ(lengthy.reason, RefusalReason::context_length);
  EXPECT_EQ(lengthy.have, 200u);
  EXPECT_EQ(verdict(core, {.prompt = 0}).reason, RefusalReason::bad_request);
  EXPECT_EQ(verdict(core, {}).reason, RefusalReason::queue_requests);
  EXPECT_FALSE(is_permanent(RefusalReason::queue_requests));
  EXPECT_EQ(core.stats().refused.total(), 0u) << "asking counts nothing";
}

TEST(Queue, EveryReasonHasItsName) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kRefusalReasons; ++i) names.push_back(to_string(static_cast<RefusalReason>(i)));
  EXPECT_THAT(names, ElementsAre("none", "bad_request", "context_length", "never_fits", "queue_requests",
                                 "queue_tokens", "known_requests", "memory"));
}

TEST(Queue, PrioritiesOrderItAndEqualsKeepTheirs) {
  Core core = Core::create(config_of({}, {sched::Policy::priority, 1'000'000})).value();
  const RequestId low = submit(core, {.priority = 2, .arrived_us = 0}).value();
  const RequestId a = submit(core, {.priority = 0, .arrived_us = 10}).value();
  const RequestId b = submit(core, {.priority = 0, .arrived_us = 10}).value();
  const RequestId urgent = submit(core, {.priority = -5, .arrived_us = 20}).value();
  const RequestId late = submit(core, {.priority = 0, .arrived_us = 2'000'001}).value();
  EXPECT_THAT(core.queued(), ElementsAre(urgent, a, b, low, late)) << "two seconds of waiting are worth two levels";
  step(core);
  EXPECT_THAT(core.running(), ElementsAre(urgent, a));
  EXPECT_THAT(core.queued(), ElementsAre(b, low, late));
}

TEST(Queue, TheHeadBlocksThoseBehindItInPolicyOrder) {
  Core core = Core::create(config_of({}, {sched::Policy::priority, 1'000'000})).value();
  const RequestId holder = submit(core, {.prompt = 60, .max_new = 10}).value();
  step(core);
  submit(core, {.prompt = 10, .priority = 1, .arrived_us = 5}).value();
  const RequestId urgent = submit(core, {.prompt = 70, .max_new = 10, .arrived_us = 10}).value();
  EXPECT_EQ(core.queued().front(), urgent);
  step(core);
  EXPECT_EQ(core.current_plan().waiting, sched::WaitReason::blocks) << "the small one would fit, and waits behind it";
  EXPECT_EQ(core.stats().running, 1u);
  while (core.find(holder)->state != RequestState::finished) step(core);
  step(core);
  EXPECT_THAT(core.running(), ElementsAre(urgent)) << "as soon as it fits";
}

TEST(Queue, APriorityOutOfRangeIsRefusedByName) {
  Core core = Core::create(config_of({})).value();
  EXPECT_THAT(submit(core, {.priority = 1001}).error().message, HasSubstr("priority is 1001, valid: -1000 to 1000"));
  EXPECT_EQ(core.stats().refused.of(RefusalReason::bad_request), 1u);
}

TEST(Queue, WhatWasNotMeasuredIsNotLearnedFrom) {
  Core core = Core::create(config_of({})).value();
  submit(core, {.prompt = 30, .max_new = 3}).value();
  step(core, 0.5);
  EXPECT_EQ(core.step_cost().samples(), 1u);
  step(core, 0);
  EXPECT_EQ(core.step_cost().samples(), 1u);
}

}  // namespace
}  // namespace kvasir::core
