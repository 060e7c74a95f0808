// What the engine hands to and from the scheduler: settings, measured times, refusals by reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/engine.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using core::RefusalReason;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RefusalReason refused_for(Engine& engine, GenerateRequest request) {
  core::SubmitVerdict why;
  why.reason = RefusalReason::memory;   // to be overwritten
  const bool taken = engine.submit(std::move(request), &why).ok();
  EXPECT_EQ(taken, why.ok());
  EXPECT_TRUE(taken || why.reason == RefusalReason::bad_request || why.wanted > why.have) << "both numbers";
  return why.reason;
}

TEST(Scheduling, RefusalsHaveAReasonAndAreCounted) {
  PoolConfig config = pool_of(8);
  config.max_model_len = 200;
  config.max_queued_requests = 2;
  config.max_queued_tokens = 40;
  auto engine = make_engine(shared_gqa(), config);
  EXPECT_EQ(refused_for(*engine, request_of({}, 4)), RefusalReason::bad_request);
  GenerateRequest request = request_of(random_prompt(5, 1), 4);
  request.priority = 2000;
  EXPECT_EQ(refused_for(*engine, request), RefusalReason::bad_request);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(250, 1), 4)), RefusalReason::context_length);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(150, 1), 4)), RefusalReason::never_fits);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(30, 1), 4)), RefusalReason::none);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(11, 1), 4)), RefusalReason::queue_tokens);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(10, 1), 4)), RefusalReason::none);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(1, 1), 4)), RefusalReason::queue_requests);

  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.waiting, 2u);
  EXPECT_EQ(stats.queued_prompt_tokens, 40u);
  EXPECT_EQ(stats.refused, 6u);
  EXPECT_EQ(stats.refusals.total(), 6u);
  EXPECT_EQ(stats.refusals.of(RefusalReason::bad_request), 2u);
  EXPECT_EQ(stats.refusals.of(RefusalReason::queue_tokens), 1u);
  engine->check_invariants();
  std::vector<TokenOutput> out;
  engine->step(out);   // both are admitted
  EXPECT_EQ(engine->stats().queued_prompt_tokens, 0u);
  EXPECT_EQ(refused_for(*engine, request_of(random_prompt(1, 1), 4)), RefusalReason::none);
}

TEST(Scheduling, StepsAreMeasuredPredictedAndLearnedFrom) {
  PoolConfig config = pool_of(64);
  config.itl_target_s = 50e-3;
  auto engine = make_engine(shared_gqa(), config);
  const sched::CostCoefficients assumed = engine->stats().step_cost;
  for (std::uint64_t i = 0; i < 3; ++i) engine->submit(request_of(random_prompt(20, i), 10)).value();
  std::vector<TokenOutput> out;
  double predicted = 0;
  while (engine->has_work()) {
    const StepReport report = engine->step(out);
    if (!report.ran) continue;
    EXPECT_GT(report.predicted_s, 0);
    EXPECT_EQ(report.queued + report.running, engine->stats().waiting + engine->stats().running);
    predicted += report.predicted_s;
  }
  const EngineStats stats = engine->stats();
  EXPECT_NE(stats.step_cost, assumed);
  EXPECT_DOUBLE_EQ(stats.predicted_s, predicted);
  EXPECT_GT(stats.total_s, 0);
}

// The target decides how prompts are cut, and nothing else: the same bits.
TEST(Scheduling, AnswersDoNotDependOnTheTarget) {
  std::vector<std::map<std::uint64_t, std::vector<TokenId>>> answers;
  for (const double target : {0.0, 1e-6}) {   // as full as can be; the minimum beside every stream
    PoolConfig config = pool_of(64);
    config.itl_target_s = target;
    auto engine = make_engine(shared_gqa(), config);
    std::map<RequestId, std::uint64_t> ids;
    for (std::uint64_t i = 0; i < 4; ++i) {
      ids[engine->submit(request_of(random_prompt(15 + 30 * static_cast<std::uint32_t>(i), i), 12)).value()] = i;
    }
    auto& got = answers.emplace_back();
    std::vector<TokenOutput> out;
    std::uint32_t most_beside_streams = 0;
    while (engine->has_work()) {
      const StepReport report = engine->step(out);
      if (report.decode_tokens > 0) most_beside_streams = std::max(most_beside_streams, report.prefill_tokens);
      for (const TokenOutput& o : out) got[ids.at(o.request)].push_back(o.token);
    }
    EXPECT_EQ(most_beside_streams == 16, target > 0) << most_beside_streams;
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(Scheduling, ALowerPriorityValueGoesFirst) {
  PoolConfig config = pool_of(64);
  config.max_sequences = 1;
  config.policy = sched::Policy::priority;
  auto engine = make_engine(shared_gqa(), config);
  std::map<RequestId, char> names;
  for (const auto& [name, priority] : {std::pair{'a', 0}, {'b', 3}, {'c', 1}, {'d', 1}, {'e', -2}}) {
    GenerateRequest request = request_of(random_prompt(8, 1), 2);
    request.priority = priority;
    names[engine->submit(request).value()] = name;
  }
  std::vector<TokenOutput> out;
  std::vector<char> order;
  while (engine->has_work()) {
    engine->step(out);
    for (const TokenOutput& o : out) {
      if (o.finish != FinishReason::none) order.push_back(names.at(o.request));
    }
  }
  EXPECT_THAT(order, ElementsAre('e', 'a', 'c', 'd', 'b'));
}

TEST(Scheduling, ATargetOutOfRangeIsRefused) {
  PoolConfig config = pool_of(8);
  config.itl_target_s = -1;
  EXPECT_THAT(Engine::create(shared_gqa(), nullptr, config).error().message, HasSubstr("itl-target is -1 s, valid: 0"));
}

}  // namespace
}  // namespace kvasir::engine::test
