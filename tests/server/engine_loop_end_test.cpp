// How streams end: cancelled in every state, drained, stopped, failed. Each exactly once, and nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "platform/clock.hpp"
#include "tests/server/loop_harness.hpp"

namespace kvasir::server::test {
namespace {

using ::testing::HasSubstr;

TEST(EngineLoop, ACancelFreesEverythingInEveryState) {
  PoolConfig pool = pool_of(40);
  pool.max_batched_tokens = 16;
  pool.max_sequences = 2;
  pool.logits_rows = 2;
  auto loop = make_loop(config_of(), pool);
  // The first stream holds the loop at known moments; the second is cancelled meanwhile.
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  submit(*loop, request_of(random_prompt(10, 1), 40), gate);
  const auto cancelled = [&](const char* state, StreamId id, RecorderSink& sink) {
    const std::uint64_t steps = loop->stats().steps;
    loop->cancel(id);
    gate->pass();
    const EndEvent end = sink.wait_end();
    EXPECT_EQ(end.reason, EndReason::cancelled) << state;
    gate->wait_held();  // the next step is over
    const LoopStats stats = loop->stats();
    EXPECT_EQ(stats.steps, steps + 1) << state;
    EXPECT_EQ(stats.cache.active_blocks, 1u) << state << ": the first stream's own";
    EXPECT_EQ(stats.running, 1u) << state;
    EXPECT_EQ(stats.waiting, 0u) << state;
    EXPECT_EQ(stats.queued_requests, 0u) << state;
    EXPECT_EQ(sink.ends(), 1) << state;
    loop->cancel(id);  // again: ignored
    return end;
  };

  gate->wait_held();
  auto in_mailbox = std::make_shared<RecorderSink>();
  const StreamId a = submit(*loop, request_of(random_prompt(60, 2), 20), in_mailbox);
  EXPECT_EQ(loop->stats().queued_requests, 1u);
  EXPECT_EQ(loop->stats().queued_tokens, 60u);
  EXPECT_EQ(cancelled("in the mailbox", a, *in_mailbox).times.scheduled_ns, 0u);

  auto prefilling = std::make_shared<RecorderSink>();
  const StreamId b = submit(*loop, request_of(random_prompt(200, 3), 20), prefilling);
  gate->pass();
  gate->wait_held();
  EXPECT_EQ(loop->stats().running, 2u);
  EXPECT_EQ(loop->stats().queued_requests, 0u);
  EXPECT_TRUE(prefilling->events().empty());
  EXPECT_GT(cancelled("prefilling", b, *prefilling).times.scheduled_ns, 0u);

  auto decoding = std::make_shared<RecorderSink>();
  const StreamId c = submit(*loop, request_of(random_prompt(5, 4), 20), decoding);
  gate->pass();
  gate->wait_held();  // its first token comes with the gate's in one step, after it
  EXPECT_EQ(cancelled("decoding", c, *decoding).completion_tokens, 1u);
  EXPECT_EQ(decoding->events().size(), 1u);

  gate->pass();
  EXPECT_EQ(gate->wait_end().reason, EndReason::length);
  EXPECT_EQ(loop->stats().cache.active_blocks, 0u);
  EXPECT_EQ(loop->stats().cache.claimed_bytes, 0u);
}

TEST(EngineLoop, ACancelInTheEnginesQueue) {
  PoolConfig pool = pool_of(40);
  pool.max_sequences = 1;
  pool.logits_rows = 1;
  auto loop = make_loop(config_of(), pool);
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{0, 1, 2});
  submit(*loop, request_of(random_prompt(10, 1), 12), gate);
  gate->wait_held();
  auto queued = std::make_shared<RecorderSink>();
  const StreamId id = submit(*loop, request_of(random_prompt(30, 2), 5), queued);
  gate->pass();
  gate->wait_held();
  LoopStats stats = loop->stats();
  EXPECT_EQ(stats.waiting, 1u);
  EXPECT_EQ(stats.queued_requests, 1u);
  EXPECT_EQ(stats.waiting_by_reason[static_cast<std::size_t>(engine::QueueReason::sequence_limit)], 1u);
  loop->cancel(id);
  gate->pass();
  EXPECT_EQ(queued->wait_end().reason, EndReason::cancelled);
  EXPECT_EQ(loop->stats().queued_requests, 0u);
  gate->wait_held();
  gate->pass();
  gate->wait_end();
  EXPECT_TRUE(queued->events().empty());
  stats = loop->stats();
  EXPECT_EQ(stats.cache.active_blocks, 0u);
  EXPECT_EQ(stats.ended[static_cast<std::size_t>(EndReason::cancelled)], 1u);
}

TEST(EngineLoop, ACancelAfterTheEndChangesNothing) {
  auto loop = make_loop(config_of(), pool_of(16));
  auto sink = std::make_shared<RecorderSink>();
  const StreamId id = submit(*loop, request_of(random_prompt(8, 1), 3), sink);
  EXPECT_EQ(sink->wait_end().reason, EndReason::length);
  loop->cancel(id);
  loop->cancel(StreamId(12345));
  auto other = std::make_shared<RecorderSink>();
  submit(*loop, request_of(random_prompt(8, 2), 3), other);
  other->wait_end();
  EXPECT_EQ(sink->ends(), 1);
  EXPECT_EQ(loop->stats().ended[static_cast<std::size_t>(EndReason::cancelled)], 0u);
}

TEST(EngineLoop, ADrainLetsAcceptedOnesEnd) {
  auto loop = make_loop(config_of(), pool_of(16));
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{0});
  auto queued = std::make_shared<RecorderSink>();
  submit(*loop, request_of(random_prompt(10, 1), 6), gate);
  gate->wait_held();
  submit(*loop, request_of(random_prompt(10, 2), 6), queued);
  loop->drain(kEver);
  EXPECT_EQ(loop->state(), LoopState::draining);
  EXPECT_FALSE(loop->wait_drained(0));
  gate->pass();
  EXPECT_TRUE(loop->wait_drained(kEver));
  EXPECT_EQ(gate->wait_end().reason, EndReason::length);
  EXPECT_EQ(queued->wait_end().reason, EndReason::length);
}

TEST(EngineLoop, ADrainsDeadlineEndsTheRest) {
  auto loop = make_loop(config_of(), pool_of(64));
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{1});
  std::vector<std::shared_ptr<RecorderSink>> others;
  submit(*loop, request_of(random_prompt(10, 1), 100), gate);
  gate->wait_held();
  for (std::uint64_t i = 0; i < 20; ++i) {
    others.push_back(std::make_shared<RecorderSink>());
    submit(*loop, request_of(random_prompt(20, i), 100), others.back());
  }
  loop->drain(kEver);
  loop->drain(platform::monotonic_ns());  // a second signal: no more grace
  gate->pass();
  EXPECT_TRUE(loop->wait_drained(kEver));
  EXPECT_EQ(gate->wait_end().reason, EndReason::shutdown);
  EXPECT_EQ(gate->events().size(), 2u);
  for (const auto& sink : others) EXPECT_EQ(sink->wait_end().reason, EndReason::shutdown);
  EXPECT_EQ(loop->stats().cache.active_blocks, 0u);
}

TEST(EngineLoop, StopEndsEveryStreamOnce) {
  auto loop = make_loop(config_of(), pool_of(64));
  std::vector<std::shared_ptr<RecorderSink>> sinks;
  for (std::uint64_t i = 0; i < 30; ++i) {
    sinks.push_back(std::make_shared<RecorderSink>());
    submit(*loop, request_of(random_prompt(20, i), 60), sinks.back());
  }
  loop->stop();
  loop->stop();
  EXPECT_EQ(loop->state(), LoopState::stopped);
  for (const auto& sink : sinks) {
    EXPECT_EQ(sink->ends(), 1);
    EXPECT_TRUE(sink->wait_end().reason == EndReason::shutdown || sink->wait_end().reason == EndReason::length);
  }
  EXPECT_EQ(loop->stats().cache.active_blocks, 0u);
  EngineLoop never_started(config_of());
  never_started.stop();
  EXPECT_EQ(never_started.state(), LoopState::stopped);
}

TEST(EngineLoop, ASinkThatThrowsFailsTheLoopAndNobodyHangs) {
  struct Thrower : RecorderSink {
    void on_token(const TokenEvent&) override { throw std::runtime_error("a fault of the sink"); }
  };
  auto loop = make_loop(config_of(), pool_of(64));
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{0});
  submit(*loop, request_of(random_prompt(10, 1), 100), gate);
  gate->wait_held();
  auto thrower = std::make_shared<Thrower>();
  auto other = std::make_shared<RecorderSink>();
  submit(*loop, request_of(random_prompt(10, 2), 100), thrower);
  submit(*loop, request_of(random_prompt(10, 3), 100), other);
  gate->pass();
  EXPECT_TRUE(loop->wait_drained(kEver));
  for (RecorderSink* sink : {gate.get(), static_cast<RecorderSink*>(thrower.get()), other.get()}) {
    const EndEvent end = sink->wait_end();
    EXPECT_EQ(end.reason, EndReason::error);
    EXPECT_THAT(end.error->message, HasSubstr("a fault of the sink"));
    EXPECT_EQ(sink->ends(), 1);
  }
  EXPECT_EQ(loop->state(), LoopState::failed);
  refusal_of(loop->submit({request_of(random_prompt(4, 1), 2), other}), RefusalReason::loop_failed);
  loop->stop();
  EXPECT_EQ(loop->state(), LoopState::failed);
}

}  // namespace
}  // namespace kvasir::server::test
