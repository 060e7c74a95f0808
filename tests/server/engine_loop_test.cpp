// What the loop gives out: the right tokens to the right sinks, on one thread, with the statistics to match.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "platform/clock.hpp"
#include "tests/server/loop_harness.hpp"

namespace kvasir::server::test {
namespace {

GenerateRequest mixed(std::uint64_t seed) {
  PhiloxSequence random(seed, 0x51);
  GenerateRequest request = request_of(random_prompt(4 + random.below(80), seed), 2 + random.below(30));
  request.sampling = {.temperature = random.below(2) == 0 ? 0.0f : 0.8f,
                      .top_p = 0.95f,
                      .seed = seed,
                      .logprobs = static_cast<std::int32_t>(random.below(4)) - 1};
  if (random.below(2) == 0) request.sampling.presence_penalty = 0.7f;
  if (random.below(3) == 0) request.prompt_logprobs = 1;
  request.ignore_eos = true;
  return request;
}

// One answer without a loop.
std::vector<TokenEvent> solo(engine::Engine& engine, const GenerateRequest& request) {
  std::vector<TokenEvent> events;
  engine.submit(request).value();
  std::vector<engine::TokenOutput> out;
  while (engine.has_work()) {
    engine.step(out);
    for (const engine::TokenOutput& o : out) {
      TokenEvent event;
      event.token = o.token;
      event.position = o.position;
      event.prompt = o.prompt;
      event.text = std::string(o.text);
      event.has_logprob = o.has_logprob;
      event.logprob = o.logprob;
      event.top_logprobs.assign(o.top_logprobs.begin(), o.top_logprobs.end());
      events.push_back(event);
    }
  }
  return events;
}

// The loop's events are the first of these.
void expect_start_of(const std::vector<TokenEvent>& got, const std::vector<TokenEvent>& whole, std::uint64_t seed) {
  ASSERT_LE(got.size(), whole.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].token, whole[i].token) << "request " << seed << " event " << i;
    EXPECT_EQ(got[i].position, whole[i].position);
    EXPECT_EQ(got[i].prompt, whole[i].prompt);
    EXPECT_EQ(got[i].text, whole[i].text);
    EXPECT_EQ(got[i].logprob, whole[i].logprob);
    ASSERT_EQ(got[i].top_logprobs.size(), whole[i].top_logprobs.size());
    for (std::size_t j = 0; j < got[i].top_logprobs.size(); ++j) {
      EXPECT_EQ(got[i].top_logprobs[j].token, whole[i].top_logprobs[j].token);
      EXPECT_EQ(got[i].top_logprobs[j].logprob, whole[i].top_logprobs[j].logprob);
    }
  }
}

// 64 requests from 8 threads, some cancelled at some moment: every answer is that of the request alone.
TEST(EngineLoop, AnswersFromManyThreadsEqualSoloRuns) {
  constexpr std::uint64_t kThreads = 8, kEach = 8;
  auto alone = make_engine(shared_gqa(), pool_of(64), true);
  std::vector<std::vector<TokenEvent>> expected;
  for (std::uint64_t seed = 0; seed < kThreads * kEach; ++seed) expected.push_back(solo(*alone, mixed(seed)));

  PoolConfig pool = pool_of(48);
  pool.max_batched_tokens = 32;
  auto loop = make_loop(config_of(), pool, true);
  std::vector<std::shared_ptr<RecorderSink>> sinks(kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      PhiloxSequence random(t, 0xca);
      std::vector<StreamId> ids;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const std::uint64_t seed = t * kEach + i;
        sinks[seed] = std::make_shared<RecorderSink>();
        ids.push_back(submit(*loop, mixed(seed), sinks[seed]));
        if (random.below(3) == 0) loop->cancel(ids[random.below(static_cast<std::uint32_t>(ids.size()))]);
        if (random.below(2) == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::set<std::thread::id> callers;
  for (std::uint64_t seed = 0; seed < sinks.size(); ++seed) {
    const EndEvent end = sinks[seed]->wait_end();
    const std::vector<TokenEvent> got = sinks[seed]->events();
    expect_start_of(got, expected[seed], seed);
    if (end.reason != EndReason::cancelled) {
      EXPECT_EQ(end.reason, EndReason::length);
      EXPECT_EQ(got.size(), expected[seed].size());
    }
    for (const std::thread::id thread : sinks[seed]->threads()) callers.insert(thread);
  }
  EXPECT_TRUE(loop->wait_drained(kEver));
  EXPECT_EQ(callers.size(), 1u);  // the loop's thread alone
  EXPECT_EQ(callers.count(std::this_thread::get_id()), 0u);
  const LoopStats stats = loop->stats();
  EXPECT_EQ(stats.cache.active_bytes, 0u);
  EXPECT_EQ(stats.cache.claimed_bytes, 0u);
  EXPECT_EQ(stats.submitted, 64u);
  EXPECT_EQ(stats.ended[0] + stats.ended[1] + stats.ended[2] + stats.ended[3] + stats.ended[4], 64u);
  EXPECT_EQ(stats.queued_requests, 0u);
  EXPECT_EQ(stats.queued_tokens, 0u);
  loop->stop();
  for (const auto& sink : sinks) EXPECT_EQ(sink->ends(), 1);
}

TEST(EngineLoop, EventsCarryChoiceTimesAndCounts) {
  auto loop = make_loop(config_of(), pool_of(32), true);
  Reserved reserved = loop->reserve(3);
  Place& place = std::get<Place>(reserved);
  ASSERT_FALSE(place.add_tokens(3 * 20));
  std::vector<std::shared_ptr<RecorderSink>> sinks;
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    GenerateRequest request = request_of(random_prompt(20, 1), 6);
    request.sampling = {.temperature = 1, .seed = 9, .choice = choice};
    request.ignore_eos = true;
    sinks.push_back(std::make_shared<RecorderSink>());
    ASSERT_TRUE(std::holds_alternative<StreamId>(loop->submit(place, {request, sinks.back()})));
  }
  EXPECT_EQ(place.requests(), 0u);
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    const EndEvent end = sinks[choice]->wait_end();
    EXPECT_EQ(end.choice, choice);
    EXPECT_EQ(end.prompt_tokens, 20u);
    EXPECT_EQ(end.completion_tokens, 6u);
    EXPECT_GT(end.times.queued_ns, 0u);
    EXPECT_LE(end.times.queued_ns, end.times.scheduled_ns);
    EXPECT_LE(end.times.scheduled_ns, end.times.first_token_ns);
    EXPECT_LE(end.times.first_token_ns, end.times.end_ns);
    std::uint32_t count = 0;
    for (const TokenEvent& event : sinks[choice]->events()) {
      EXPECT_EQ(event.stream, end.stream);
      EXPECT_EQ(event.choice, choice);
      EXPECT_EQ(event.completion_tokens, ++count);
      EXPECT_GE(event.at_ns, end.times.first_token_ns);
      EXPECT_LE(event.at_ns, end.times.end_ns);
      EXPECT_EQ(event.times.first_token_ns, end.times.first_token_ns);
    }
  }
  EXPECT_NE(sinks[0]->tokens(), sinks[1]->tokens());
}

TEST(EngineLoop, StatisticsAreThereBeforeTheEvent) {
  EngineLoop* loop = nullptr;
  struct Reader : RecorderSink {
    explicit Reader(EngineLoop*& l) : loop(l) {}
    void on_end(const EndEvent& event) override {
      at_end = loop->stats();
      RecorderSink::on_end(event);
    }
    EngineLoop*& loop;
    LoopStats at_end;
  };
  auto owned = make_loop(config_of(), pool_of(16));
  loop = owned.get();
  auto sink = std::make_shared<Reader>(loop);
  GenerateRequest request = request_of(random_prompt(20, 1), 5);
  request.prompt_logprobs = 0;
  submit(*loop, request, sink);
  sink->wait_end();
  const LoopStats& stats = sink->at_end;
  EXPECT_EQ(stats.ended[static_cast<std::size_t>(EndReason::length)], 1u);
  EXPECT_EQ(stats.prompt_tokens_computed, 20u);
  EXPECT_EQ(stats.generated_tokens, 5u);
  EXPECT_EQ(stats.scored_prompt_tokens, 19u);
  EXPECT_EQ(stats.steps, 5u);
  EXPECT_EQ(stats.cache.active_blocks, 0u);
  EXPECT_GT(stats.step_s, 0);
  EXPECT_GE(stats.step_s, stats.forward_s);
}

// Each thread waits for its answer before it asks again, so the loop falls asleep and is woken all the time; the idle
// turn is an hour away.
TEST(EngineLoop, AStepsEventsComeBetweenTheHooksTwoCalls) {
  struct Watch : RecorderSink {
    Watch(const std::atomic<int>& telling, std::vector<std::size_t> hold_at) : RecorderSink(hold_at), depth(telling) {}
    void on_token(const TokenEvent& event) override {
      EXPECT_EQ(depth, 1);
      RecorderSink::on_token(event);
    }
    void on_end(const EndEvent& event) override {
      EXPECT_EQ(depth, 1);
      RecorderSink::on_end(event);
    }
    const std::atomic<int>& depth;
  };
  std::atomic<int> depth{0}, begun{0};
  EngineLoopConfig config = config_of();
  config.on_telling = [&](bool telling) {
    depth += telling ? 1 : -1;
    begun += telling ? 1 : 0;
  };
  const auto loop = make_loop(config, pool_of(64));
  const auto first = std::make_shared<Watch>(depth, std::vector<std::size_t>{0});
  const auto second = std::make_shared<Watch>(depth, std::vector<std::size_t>{});
  submit(*loop, request_of({1, 2, 3}, 5), first);
  first->wait_held();
  submit(*loop, request_of({4, 5, 6}, 5), second);
  first->pass();
  first->wait_end();
  second->wait_end();
  loop->stop();
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(begun, 6) << "once a step: one alone, five together";
}

TEST(EngineLoop, NoWakeupIsLost) {
  auto loop = make_loop(config_of(), pool_of(64));
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 100; ++i) {
        auto sink = std::make_shared<RecorderSink>();
        const StreamId id = submit(*loop, request_of(random_prompt(2, t * 100 + i), 1 + i % 2), sink);
        if (i % 5 == 0) loop->cancel(id);
        sink->wait_end();
        ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 400);
}

TEST(EngineLoop, TheHeartbeatBeatsWhileIdle) {
  EngineLoopConfig config = config_of();
  config.idle_turn_ms = 1;
  auto loop = std::make_unique<EngineLoop>(config);
  EXPECT_EQ(loop->heartbeat_ns(), 0u);
  ASSERT_TRUE(loop->start(make_engine(shared_gqa(), pool_of(8))).ok());
  std::set<std::uint64_t> seen;
  while (seen.size() < 5) {
    seen.insert(loop->heartbeat_ns());
    std::this_thread::yield();
  }
  EXPECT_LE(*seen.rbegin(), platform::monotonic_ns());
  EXPECT_EQ(loop->stats().steps, 0u);
}

TEST(EngineLoop, ASinkMaySubmitAndCancel) {
  struct Chain : RecorderSink {
    explicit Chain(EngineLoop& l, std::shared_ptr<RecorderSink> n) : loop(l), next(std::move(n)) {}
    void on_end(const EndEvent& event) override {
      loop.cancel(event.stream);
      id = submit(loop, request_of(random_prompt(6, 3), 3), next);
      RecorderSink::on_end(event);
    }
    EngineLoop& loop;
    std::shared_ptr<RecorderSink> next;
    StreamId id;
  };
  auto loop = make_loop(config_of(), pool_of(16));
  auto next = std::make_shared<RecorderSink>();
  auto first = std::make_shared<Chain>(*loop, next);
  submit(*loop, request_of(random_prompt(6, 2), 3), first);
  EXPECT_EQ(next->wait_end().reason, EndReason::length);
}

}  // namespace
}  // namespace kvasir::server::test
