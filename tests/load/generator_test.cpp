// The generator under simulated time: every latency is known in advance.
#include "load/generator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "load/metrics.hpp"
#include "tests/load/simulated_transport.hpp"

namespace kvasir::load {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Workload constant_rate(std::size_t requests, double rate) {
  Plan plan =
      plan_random(requests, {.rate_per_s = rate, .burstiness = kInfinity}, {.input_tokens = 4, .output_tokens = 3}, {});
  return *Workload::create(std::move(plan), PromptSource::token_ids(10, 20, 1), {}, {.model = "m"});
}

SimulatedTransport::Reply three_tokens(std::uint64_t first_ms, std::uint64_t gap_ms) {
  return {.tokens_after_ns = {first_ms * kMs, (first_ms + gap_ms) * kMs, (first_ms + 2 * gap_ms) * kMs}};
}

TEST(Generator, EveryLatencyIsExact) {
  SimulatedTransport transport([](std::uint64_t, std::uint64_t) { return three_tokens(30, 10); });
  const RunRecord run = generate(constant_rate(20, 100), transport, {});
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(run.requests[i].scheduled_ns, run.started_ns + (i + 1) * 10 * kMs);
    EXPECT_EQ(run.requests[i].sent_ns, run.requests[i].scheduled_ns);
  }
  const Metrics metrics = compute_metrics(run, {.percents = {0, 50, 99, 100}});
  EXPECT_EQ(metrics.completed, 20u);
  EXPECT_EQ(metrics.failed, 0u);
  EXPECT_EQ(metrics.input_tokens, 80u);
  EXPECT_EQ(metrics.output_tokens, 60u);
  EXPECT_DOUBLE_EQ(metrics.duration_s, 0.250);  // the last comes at 200 ms and takes 50
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 80);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 240);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 560);
  EXPECT_EQ(metrics.max_output_tokens_per_s, 60u);
  EXPECT_EQ(metrics.max_concurrent_requests, 5u);  // 50 ms each, one every 10 ms
  for (const Distribution* each : {&metrics.ttft, &metrics.ttft_including_client_queue}) {
    EXPECT_NEAR(each->mean, 0.030, 1e-15 * 20);  // a sum of twenty, rounded
    EXPECT_NEAR(each->deviation, 0, 1e-12);
    for (const Percentile& percentile : each->percentiles) EXPECT_DOUBLE_EQ(percentile.seconds.estimate, 0.030);
  }
  EXPECT_EQ(metrics.itl.count, 40u);
  EXPECT_DOUBLE_EQ(metrics.itl.median.estimate, 0.010);
  EXPECT_DOUBLE_EQ(metrics.tpot.median.estimate, 0.010);
  EXPECT_DOUBLE_EQ(metrics.e2el.median.high, 0.050);
  EXPECT_DOUBLE_EQ(metrics.client_queue_time.mean, 0);
}

// The server stalls from 0.5 s to 1.5 s. Requests keep coming every 10 ms, and each feels what is left of the stall.
TEST(Generator, AStallIsFeltByEveryRequestThatWouldHaveComeDuringIt) {
  std::uint64_t started = 0;
  const auto stalls = [&](std::uint64_t, std::uint64_t sent_ns) {
    if (started == 0) started = sent_ns - 10 * kMs;
    const std::uint64_t at = sent_ns - started, begin = 500 * kMs, end = 1500 * kMs;
    const std::uint64_t held = at >= begin && at < end ? end - at : 0;
    return SimulatedTransport::Reply{.tokens_after_ns = {held + kMs, held + 2 * kMs}};
  };
  SimulatedTransport open(stalls);
  const Metrics metrics = compute_metrics(generate(constant_rate(200, 100), open, {}), {.percents = {75, 90, 99}});
  // 100 of 200 requests met the stall, with 1000, 990 ... 10 ms of it to go.
  EXPECT_NEAR(metrics.ttft.mean, 0.001 + 0.5 * 0.505, 1e-9);
  EXPECT_NEAR(metrics.ttft.percentiles[0].seconds.estimate, 0.5035, 1e-9);
  EXPECT_NEAR(metrics.ttft.percentiles[1].seconds.estimate, 0.8020, 1e-9);
  EXPECT_NEAR(metrics.ttft.percentiles[2].seconds.estimate, 0.9811, 1e-9);
}

// The same server behind a limit of one: sent times alone hide the stall, scheduled times do not.
TEST(Generator, BehindAConcurrencyLimitTheScheduledTimeStillShowsTheStall) {
  std::uint64_t started = 0;
  SimulatedTransport limited([&](std::uint64_t, std::uint64_t sent_ns) {
    if (started == 0) started = sent_ns - 10 * kMs;
    const std::uint64_t at = sent_ns - started;
    const std::uint64_t held = at >= 500 * kMs && at < 1500 * kMs ? 1500 * kMs - at : 0;
    return SimulatedTransport::Reply{.tokens_after_ns = {held + kMs, held + 2 * kMs}};
  });
  const RunRecord run = generate(constant_rate(200, 100), limited, {.max_concurrency = 1});
  const Metrics metrics = compute_metrics(run, {.percents = {90}});
  EXPECT_EQ(metrics.max_concurrent_requests, 1u);
  EXPECT_DOUBLE_EQ(metrics.ttft.percentiles[0].seconds.estimate, 0.001);  // one request alone was sent during the stall
  EXPECT_GT(metrics.ttft_including_client_queue.percentiles[0].seconds.estimate, 0.6);
  EXPECT_GT(metrics.e2el_including_client_queue.percentiles[0].seconds.estimate, 0.6);
  EXPECT_GT(metrics.client_queue_time.mean, 0.2);
  for (const RequestRecord& record : run.requests) EXPECT_GE(record.sent_ns, record.scheduled_ns);
}

TEST(Generator, AllAtOnceMeansAllAtOnce) {
  SimulatedTransport transport([](std::uint64_t, std::uint64_t) { return three_tokens(5, 5); });
  const RunRecord run = generate(constant_rate(300, kInfinity), transport, {});
  EXPECT_EQ(compute_metrics(run, {}).max_concurrent_requests, 300u);
  for (const RequestRecord& record : run.requests) EXPECT_EQ(record.sent_ns, run.started_ns);
}

TEST(Generator, HeldBackRequestsGoInOrderAsPlacesGetFree) {
  SimulatedTransport transport([](std::uint64_t, std::uint64_t) { return three_tokens(10, 0); });
  const RunRecord run = generate(constant_rate(7, kInfinity), transport, {.max_concurrency = 3});
  std::vector<std::uint64_t> sent_ms;
  for (const RequestRecord& record : run.requests) sent_ms.push_back((record.sent_ns - run.started_ns) / kMs);
  EXPECT_THAT(sent_ms, testing::ElementsAre(0, 0, 0, 10, 10, 10, 20));
}

TEST(Generator, FailuresAreCountedByKindAndMeasuredByNobody) {
  SimulatedTransport transport([](std::uint64_t id, std::uint64_t) {
    if (id % 4 == 1) return SimulatedTransport::Reply{.error_kind = "http_503", .fails_after_ns = 500 * kMs};
    if (id % 4 == 2)
      return SimulatedTransport::Reply{
          .tokens_after_ns = {5 * kMs}, .error_kind = "closed", .fails_after_ns = 900 * kMs};
    return three_tokens(30, 10);
  });
  const Metrics metrics = compute_metrics(generate(constant_rate(40, 1000), transport, {}), {.percents = {100}});
  EXPECT_EQ(metrics.completed, 20u);
  EXPECT_EQ(metrics.failed, 20u);
  EXPECT_THAT(metrics.errors, testing::ElementsAre(testing::Pair("closed", 10u), testing::Pair("http_503", 10u)));
  EXPECT_DOUBLE_EQ(metrics.e2el.percentiles[0].seconds.estimate, 0.050);
}

TEST(Generator, TurnsFollowAnswersAfterTheThinkTimeAndRepeatThem) {
  Plan plan = plan_random(2, {.rate_per_s = 1, .burstiness = kInfinity}, {.input_tokens = 2, .output_tokens = 3},
                          {.turns = 3, .think_s = 0.25});
  const Workload talk =
      *Workload::create(std::move(plan), PromptSource::words(1), {}, {.api = client::Api::chat, .model = "m"});
  SimulatedTransport transport([](std::uint64_t, std::uint64_t) { return three_tokens(30, 10); });
  const RunRecord run = generate(talk, transport, {});
  ASSERT_EQ(run.requests.size(), 6u);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t turn = 0; turn < 3; ++turn) {
      const RequestRecord& record = run.requests[3 * i + turn];
      EXPECT_TRUE(record.good());
      EXPECT_EQ(record.scheduled_ns, run.started_ns + (i + 1) * 1000 * kMs + turn * 300 * kMs);
      EXPECT_EQ(record.sent_ns, record.scheduled_ns);
    }
  }
  const std::string& last = transport.sent.back().body;
  EXPECT_THAT(last, testing::HasSubstr(R"({"role":"assistant","content":"xxx"})"));
  EXPECT_EQ(run.requests[2].input_tokens, 3u * 2 + 2 * 3);
}

TEST(Generator, AFailedTurnEndsItsConversation) {
  Plan plan = plan_random(2, {}, {.input_tokens = 2, .output_tokens = 3}, {.turns = 3});
  const Workload talk =
      *Workload::create(std::move(plan), PromptSource::words(1), {}, {.api = client::Api::chat, .model = "m"});
  SimulatedTransport transport([](std::uint64_t id, std::uint64_t) {
    return id == 1 ? SimulatedTransport::Reply{.error_kind = "timeout", .fails_after_ns = kMs} : three_tokens(1, 1);
  });
  const Metrics metrics = compute_metrics(generate(talk, transport, {}), {});
  EXPECT_EQ(metrics.completed, 4u);
  EXPECT_THAT(metrics.errors, testing::ElementsAre(testing::Pair("not_sent", 1u), testing::Pair("timeout", 1u)));
}

TEST(Generator, AnInterruptCancelsWhatRunsAndKeepsWhatEnded) {
  SimulatedTransport transport([](std::uint64_t id, std::uint64_t) { return three_tokens(id < 3 ? 1 : 60'000, 1); });
  std::size_t ended = 0;
  const RunRecord run = generate(constant_rate(10, 1000), transport,
                                 {.on_progress = [&](std::size_t now) { ended = now; },
                                  .stop = [&] { return ended == 3 && transport.sent.size() == 10; }});
  EXPECT_TRUE(run.interrupted);
  const Metrics metrics = compute_metrics(run, {});
  EXPECT_EQ(metrics.completed, 3u);
  EXPECT_THAT(metrics.errors, testing::ElementsAre(testing::Pair("cancelled", 7u)));
}

TEST(Generator, MoreRequestsThanBodiesMadeAheadAreAllSentOnTime) {
  SimulatedTransport transport([](std::uint64_t, std::uint64_t) { return three_tokens(1, 1); });
  const Workload workload = constant_rate(500, 200);
  const RunRecord run = generate(workload, transport, {});
  ASSERT_EQ(transport.sent.size(), 500u);
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(transport.sent[i].id, i);
    EXPECT_EQ(transport.sent[i].body, workload.body(i, 0, {}));
    EXPECT_EQ(transport.sent[i].ns, run.requests[i].scheduled_ns);
  }
}

}  // namespace
}  // namespace kvasir::load
