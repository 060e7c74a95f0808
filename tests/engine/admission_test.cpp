// What a loop around the engine asks: would this be refused, what left the queue, why do the others wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

std::vector<GenerateRequest> good_and_bad() {
  std::vector<GenerateRequest> all;
  for (const std::uint32_t prompt : {1u, 60u, 63u, 64u, 65u, 200u}) {
    for (const std::uint32_t max_tokens : {1u, 2u, 5u, 64u, 1000u}) {
      all.push_back(request_of(random_prompt(prompt, 1), max_tokens));
      if (max_tokens == 1) all.back().max_tokens.reset();
    }
  }
  all.push_back(request_of({}, 3));
  all.push_back(request_of({5}, 0));
  all.push_back(request_of({5, 288}, 1));
  all.push_back(request_of({5}, 1));
  all.back().stop = {"x"};
  all.push_back(request_of({5}, 1));
  all.back().sampling.min_p = 2;
  all.push_back(request_of({5}, 1));
  all.back().sampling.allowed_token_ids = {300};
  all.push_back(request_of(random_prompt(shared_gqa()->geometry().context, 1), 1));
  return all;
}

TEST(Admission, CheckSaysWhatSubmitWouldSay) {
  auto engine = make_engine(shared_gqa(), pool_of(4));
  int refused = 0, accepted = 0;
  for (const GenerateRequest& request : good_and_bad()) {
    const Status checked = engine->check(request);
    const Result<RequestId> id = engine->submit(request);
    ASSERT_EQ(checked.ok(), id.ok()) << request.prompt.size() << " + " << request.max_tokens.value_or(0);
    (id.ok() ? accepted : refused) += 1;
    if (id.ok()) {
      engine->cancel(*id);
    } else {
      EXPECT_EQ(checked.error().message, id.error().message);
      EXPECT_EQ(checked.error().code, id.error().code);
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_GE(accepted, 10);
}

TEST(Admission, CheckMayBeAskedDuringSteps) {
  auto engine = make_engine(shared_gqa(), pool_of(8));
  std::atomic<bool> asking{false};
  std::atomic<bool> done{false};
  std::thread other([&] {
    const std::vector<GenerateRequest> requests = good_and_bad();
    do {
      for (const GenerateRequest& request : requests) asking = asking || engine->check(request).ok();
    } while (!done);
  });
  while (!asking) std::this_thread::yield();
  std::vector<TokenOutput> out;
  for (std::uint64_t i = 0; i < 4; ++i) {
    engine->submit(request_of(random_prompt(20, i), 20)).value();
    while (engine->has_work()) engine->step(out);
  }
  done = true;
  other.join();
}

TEST(Admission, EachRequestLeavesTheQueueOnce) {
  PoolConfig config = pool_of(12);  // room for a few of these
  config.max_batched_tokens = 40;
  auto engine = make_engine(shared_gqa(), config);
  std::vector<RequestId> submitted, admitted;
  for (std::uint64_t i = 0; i < 9; ++i)
    submitted.push_back(engine->submit(request_of(random_prompt(30, i), 10)).value());
  bool waited_for_blocks = false, waited_for_the_step = false;
  std::vector<TokenOutput> out;
  while (engine->has_work()) {
    const StepReport report = engine->step(out);
    admitted.insert(admitted.end(), engine->admitted().begin(), engine->admitted().end());
    const EngineStats stats = engine->stats();
    EXPECT_EQ(admitted.size() + stats.waiting, 9u);
    EXPECT_EQ(stats.waiting == 0, report.waiting == QueueReason::none);
    waited_for_blocks = waited_for_blocks || report.waiting == QueueReason::blocks;
    waited_for_the_step = waited_for_the_step || report.waiting == QueueReason::token_budget;
  }
  EXPECT_EQ(admitted, submitted);
  EXPECT_TRUE(waited_for_blocks);
  EXPECT_TRUE(waited_for_the_step);
}

TEST(Admission, RequestsWaitForASequence) {
  PoolConfig config = pool_of(16);
  config.max_sequences = 2;
  config.logits_rows = 2;
  auto engine = make_engine(shared_gqa(), config);
  for (std::uint64_t i = 0; i < 3; ++i) engine->submit(request_of(random_prompt(5, i), 4)).value();
  std::vector<TokenOutput> out;
  EXPECT_EQ(engine->step(out).waiting, QueueReason::sequence_limit);
  EXPECT_EQ(engine->admitted().size(), 2u);
  EXPECT_EQ(engine->step(out).waiting, QueueReason::sequence_limit);
  EXPECT_TRUE(engine->admitted().empty());
}

}  // namespace
}  // namespace kvasir::engine::test
