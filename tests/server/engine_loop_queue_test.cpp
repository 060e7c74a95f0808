// What the loop refuses, and what a place in its queue costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/loop_harness.hpp"

namespace kvasir::server::test {
namespace {

using ::testing::HasSubstr;

TEST(EngineLoop, EveryRefusalIsTyped) {
  auto loop = std::make_unique<EngineLoop>(config_of(3));
  const auto sink = std::make_shared<RecorderSink>();
  const auto tiny = [] { return request_of(random_prompt(4, 1), 2); };
  EXPECT_THAT(refusal_of(loop->submit({tiny(), sink}), RefusalReason::not_ready), HasSubstr("loading"));
  ASSERT_TRUE(loop->start(make_engine(shared_gqa(), pool_of(8))).ok());

  EXPECT_THAT(refusal_of(loop->submit({request_of(random_prompt(100, 1), 40), sink}), RefusalReason::never_fits),
              HasSubstr("9 KV blocks"));
  const std::uint32_t context = shared_gqa()->geometry().context;
  EXPECT_THAT(refusal_of(loop->submit({request_of(random_prompt(context, 1), 1), sink}), RefusalReason::never_fits),
              HasSubstr(std::to_string(context)));
  EXPECT_THAT(refusal_of(loop->submit({request_of({}, 1), sink}), RefusalReason::bad_request),
              HasSubstr("prompt has 0 tokens"));
  GenerateRequest bad = tiny();
  bad.sampling.top_p = 3;
  EXPECT_THAT(refusal_of(loop->submit({bad, sink}), RefusalReason::bad_request), HasSubstr("top_p is 3"));
  Reserved too_many = loop->reserve(4);
  EXPECT_EQ(std::get<Refusal>(too_many).reason, RefusalReason::never_fits);
  {
    Reserved two = loop->reserve(2);
    ASSERT_TRUE(std::holds_alternative<Place>(two));
    Reserved more = loop->reserve(2);
    ASSERT_TRUE(std::holds_alternative<Refusal>(more));
    EXPECT_EQ(std::get<Refusal>(more).reason, RefusalReason::queue_full_requests);
    EXPECT_EQ(std::get<Refusal>(more).limit, 3u);
    EXPECT_TRUE(std::holds_alternative<Place>(loop->reserve(1)));
  }
  EXPECT_EQ(loop->stats().queued_requests, 0u);  // places not used are given back
  loop->drain(kEver);
  EXPECT_THAT(refusal_of(loop->submit({tiny(), sink}), RefusalReason::draining), HasSubstr("shutting down"));
  loop->stop();
  refusal_of(loop->submit({tiny(), sink}), RefusalReason::draining);
  const LoopStats stats = loop->stats();
  const auto refused = [&stats](RefusalReason reason) { return stats.refused[static_cast<std::size_t>(reason)]; };
  EXPECT_EQ(refused(RefusalReason::not_ready), 1u);
  EXPECT_EQ(refused(RefusalReason::never_fits), 3u);
  EXPECT_EQ(refused(RefusalReason::bad_request), 2u);
  EXPECT_EQ(refused(RefusalReason::queue_full_requests), 1u);
  EXPECT_EQ(refused(RefusalReason::draining), 2u);
  EXPECT_EQ(stats.submitted, 0u);
  EXPECT_EQ(sink->ends(), 0);
}

TEST(EngineLoop, TheQueueIsBoundedInTokensToo) {
  EngineLoopConfig config = config_of();
  config.max_queued_tokens = 100;
  auto loop = make_loop(config, pool_of(64));
  Reserved text = loop->reserve(2);  // tokens not known yet
  Place& place = std::get<Place>(text);
  EXPECT_FALSE(place.add_tokens(90));
  EXPECT_EQ(loop->stats().queued_tokens, 90u);
  const std::optional<Refusal> refusal = place.add_tokens(11);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, RefusalReason::queue_full_tokens);
  EXPECT_EQ(refusal->wanted, 11u);
  EXPECT_EQ(refusal->limit, 100u);
  EXPECT_EQ(std::get<Refusal>(loop->reserve(1, 11)).reason, RefusalReason::queue_full_tokens);
  EXPECT_TRUE(std::holds_alternative<Place>(loop->reserve(1, 10)));
  place = Place();
  EXPECT_EQ(loop->stats().queued_tokens, 0u);
  // Larger than the bound, it is served all the same where nobody waits.
  auto sink = std::make_shared<RecorderSink>();
  submit(*loop, request_of(random_prompt(150, 1), 2), sink);
  EXPECT_EQ(sink->wait_end().reason, EndReason::length);
}

TEST(EngineLoop, ARequestThatCannotFitIsRefusedDuringAStepToo) {
  auto loop = make_loop(config_of(), pool_of(8));
  auto gate = std::make_shared<RecorderSink>(std::vector<std::size_t>{0});
  submit(*loop, request_of(random_prompt(10, 1), 4), gate);
  gate->wait_held();  // the loop's thread does nothing for us now
  refusal_of(loop->submit({request_of(random_prompt(100, 1), 100), gate}), RefusalReason::never_fits);
  gate->pass();
  gate->wait_end();
}

TEST(EngineLoop, AnEngineThatHoldsTooFewIsRefused) {
  EngineLoop loop(config_of(1000));
  const Status status = loop.start(make_engine(shared_gqa(), pool_of(8)));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("max-queued is 512, valid: at least 1008"));
}

}  // namespace
}  // namespace kvasir::server::test
