#include "core/core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.hpp"
#include "cache/footprint.hpp"

namespace kvasir::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CoreConfig small_config() {
  CoreConfig config;
  config.cache.groups = {{16, 8, 0}};
  config.cache.max_sequence_rows = 128;
  config.limits = {.max_num_seqs = 2, .max_num_batched_tokens = 32, .chunk_alignment = 1};
  config.max_requests = 4;
  return config;
}

const std::vector<TokenId> kPrompt = {10, 11, 12};

TEST(Core, ConfigurationErrorsAreTold) {
  CoreConfig config = small_config();
  config.limits.max_num_batched_tokens = 1;
  EXPECT_THAT(Core::create(config).error().message, HasSubstr("max_num_batched_tokens = 1"));
  config = small_config();
  config.max_requests = 1;
  EXPECT_THAT(Core::create(config).error().message, HasSubstr("max_requests = 1"));
  config = small_config();
  config.cache.groups.clear();
  EXPECT_THAT(Core::create(config).error().message, HasSubstr("0 cache groups"));
}

TEST(Core, LifeOfARequest) {
  Core core = Core::create(small_config()).value();
  EXPECT_TRUE(core.plan(0).empty());
  EXPECT_FALSE(core.step_in_flight());
  const RequestId id = core.submit({kPrompt, 3}).value();
  EXPECT_EQ(core.find(id)->state, RequestState::queued);
  EXPECT_THAT(core.plan(1).chunks, ElementsAre(sched::Chunk{id, 0, 3, true}));
  EXPECT_EQ(core.find(id)->state, RequestState::prefilling);
  EXPECT_DEATH(core.plan(1), "one step is in flight");
  core.apply(std::vector<TokenResult>{{id, 20, false}});
  EXPECT_EQ(core.find(id)->state, RequestState::decoding);
  EXPECT_THAT(core.plan(2).chunks, ElementsAre(sched::Chunk{id, 3, 1, true}));
  core.apply(std::vector<TokenResult>{{id, 21, false}});
  core.plan(3);
  core.apply(std::vector<TokenResult>{{id, 22, false}});
  EXPECT_EQ(core.find(id)->reason, FinishReason::length);
  EXPECT_THAT(core.find(id)->output(), ElementsAre(20, 21, 22));
  EXPECT_THAT(core.find(id)->tokens, ElementsAre(10, 11, 12, 20, 21, 22));
  EXPECT_THAT(core.finished(), ElementsAre(id));
  core.check_invariants();
  core.forget(id);
  EXPECT_EQ(core.find(id), nullptr);
  EXPECT_FALSE(core.cancel(id));
  EXPECT_DEATH(core.forget(id), "no such request");
  EXPECT_DEATH(core.apply({}), "needs a step in flight");
}

TEST(Core, StopEndsAtOnceAndFreesEverything) {
  Core core = Core::create(small_config()).value();
  const RequestId id = core.submit({kPrompt, 100}).value();
  core.plan(0);
  core.apply(std::vector<TokenResult>{{id, 2, true}});
  EXPECT_EQ(core.find(id)->reason, FinishReason::stop);
  EXPECT_THAT(core.find(id)->output(), ElementsAre(2));
  EXPECT_EQ(core.cache().stats(0).pool.free, 8u);
  EXPECT_EQ(core.cache().stats(0).claimed, 0u);
}

TEST(Core, SubmitRefusesWithItsReason) {
  Core core = Core::create(small_config()).value();
  EXPECT_THAT(core.submit({{}, 3}).error().message, HasSubstr("0 tokens"));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(core.submit({kPrompt, 3}).ok());
  const Result<RequestId> fifth = core.submit({kPrompt, 3});
  EXPECT_EQ(fifth.error().code, ErrorCode::exhausted);
  EXPECT_THAT(fifth.error().message, HasSubstr("max_requests = 4"));
  EXPECT_EQ(core.stats().refused.total(), 2u);
  EXPECT_EQ(core.stats().submitted, 4u);
}

TEST(Core, WrongResultsAbort) {
  Core core = Core::create(small_config()).value();
  const RequestId id = core.submit({kPrompt, 3}).value();
  core.plan(0);
  EXPECT_DEATH(core.apply({}), "one result for each chunk");
  EXPECT_DEATH(core.apply(std::vector<TokenResult>{{id, 1, false}, {id, 1, false}}), "no results beyond");
}

TEST(Core, AbandonedStepIsPlannedAgain) {
  Core core = Core::create(small_config()).value();
  const RequestId id = core.submit({std::vector<TokenId>(50, 1), 3}).value();
  core.plan(0);
  core.apply({});
  const std::vector<sched::Chunk> planned = core.plan(1).chunks;
  EXPECT_EQ(core.cache().rows(core.find(id)->sequence), 50u);
  core.abandon();
  core.check_invariants();
  EXPECT_EQ(core.cache().rows(core.find(id)->sequence), 32u);
  EXPECT_EQ(core.plan(2).chunks, planned);
  EXPECT_TRUE(core.cancel(id));
  core.abandon();
  EXPECT_EQ(core.find(id)->reason, FinishReason::cancelled);
  EXPECT_EQ(core.cache().stats(0).pool.free, 8u);
}

TEST(Core, IdsRiseWithArrivalThoughSlotsAreReused) {
  Core core = Core::create(small_config()).value();
  RequestId last(0);
  for (int i = 0; i < 20; ++i) {
    const RequestId id = core.submit({kPrompt, 1}).value();
    if (i > 0) {
      EXPECT_GT(id, last);
    }
    last = id;
    core.cancel(id);
    core.forget(id);
  }
  EXPECT_THAT(core.finished(), IsEmpty());
}

// Random arrivals, steps, stops, hang-ups and lost steps. Memory is played with one token a row: what a step attends
// to, read through the block tables, must be exactly the request's own history, whatever else ran and ended meanwhile.
class Play {
 public:
  explicit Play(std::uint64_t seed) : core_(Core::create(config(seed)).value()), random_(seed) {}

  void step() {
    for (std::uint32_t i = random_.below(3); i > 0; --i) arrive();
    if (random_.below(3) == 0) hang_up();
    const sched::StepPlan& plan = core_.plan(now_++);
    core_.check_invariants();
    if (plan.empty()) return;
    if (random_.below(3) == 0) hang_up();
    compute(plan);
    if (random_.below(10) == 0) {
      core_.abandon();
    } else {
      std::vector<TokenResult> results;
      for (const sched::Chunk& chunk : plan.chunks)
        if (chunk.wants_logits) results.push_back({chunk.request, next_token_++, random_.below(20) == 0});
      core_.apply(results);
    }
    core_.check_invariants();
    while (!core_.finished().empty() && random_.below(4) != 0) settle(core_.finished().front());
  }

  void finish() {
    for (int i = 0; i < 1000 && !core_.idle(); ++i) {
      if (core_.plan(now_++).empty()) break;
      compute(core_.current_plan());
      std::vector<TokenResult> results;
      for (const sched::Chunk& chunk : core_.current_plan().chunks)
        if (chunk.wants_logits) results.push_back({chunk.request, next_token_++, false});
      core_.apply(results);
    }
    EXPECT_TRUE(core_.idle()) << "every admitted request ends";
    while (!core_.finished().empty()) settle(core_.finished().front());
    for (std::uint32_t g = 0; g < core_.cache().groups(); ++g) {
      EXPECT_EQ(core_.cache().stats(g).pool.free, core_.cache().stats(g).pool.total);
      EXPECT_EQ(core_.cache().stats(g).claimed, 0u);
    }
  }
  std::map<FinishReason, int> ended;
  int refused = 0;

 private:
  static CoreConfig config(std::uint64_t seed) {
    CoreConfig config;
    config.cache.groups = {{16, 12, 1}, {4, 60, 0}};
    config.cache.max_sequence_rows = 150;
    config.cache.allocation_order = seed;
    config.limits = {.max_num_seqs = 5, .max_num_batched_tokens = 40, .chunk_alignment = seed % 2 == 0 ? 1u : 16u};
    config.max_requests = 20;
    return config;
  }

  void arrive() {
    const std::vector<TokenId> prompt(1 + random_.below(100), next_token_++);
    const std::uint64_t max_new = random_.below(30);
    const Result<RequestId> id = core_.submit({prompt, max_new});
    if (!id.ok()) ++refused;
    if (!id.ok() && id.error().code == ErrorCode::does_not_fit) {
      EXPECT_GT(cache::rows_bound(prompt.size(), max_new), 150u) << "only what never fits is refused";
    }
    if (id.ok()) known_.push_back(*id);
  }

  void hang_up() {
    if (!known_.empty()) core_.cancel(known_[random_.below(static_cast<std::uint32_t>(known_.size()))]);
  }

  // Writes the step's rows, then reads back every row that its chunks may attend to.
  void compute(const sched::StepPlan& plan) {
    for (const bool write : {true, false})
      for (const sched::Chunk& chunk : plan.chunks) {
        const Request& request = *core_.find(chunk.request);
        const std::uint32_t end = chunk.first_position + chunk.token_count;
        for (std::uint32_t g = 0; g < core_.cache().groups(); ++g) {
          const cache::BlockTable& table = core_.cache().table(request.sequence, g);
          ASSERT_EQ(table.rows(), end);
          for (std::uint32_t i = write ? chunk.first_position : 0; i < end; ++i) {
            TokenId& row = memory_[g][{table.ids()[i / table.block_tokens()], i % table.block_tokens()}];
            if (write) row = request.tokens[i];
            ASSERT_EQ(row, request.tokens[i]) << "row " << i;
          }
        }
      }
  }

  void settle(RequestId id) {
    ++ended[core_.find(id)->reason];
    core_.forget(id);
    std::erase(known_, id);
  }

  Core core_;
  PhiloxSequence random_;
  std::vector<RequestId> known_;
  std::map<std::uint32_t, std::map<std::pair<BlockId, std::uint32_t>, TokenId>> memory_;
  TokenId next_token_ = 1;
  std::uint64_t now_ = 0;
};

TEST(Core, RandomLivesKeepEveryRowAndLeaveNothingBehind) {
  std::map<FinishReason, int> ended;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed);
    for (int i = 0; i < 150 && !::testing::Test::HasFatalFailure(); ++i) play.step();
    play.finish();
    for (const auto& [reason, count] : play.ended) ended[reason] += count;
    refused += play.refused;
  }
  for (const FinishReason reason : {FinishReason::stop, FinishReason::length, FinishReason::cancelled})
    EXPECT_GT(ended[reason], 50) << to_string(reason);
  EXPECT_EQ(ended[FinishReason::error], 0) << "an admitted request never fails";
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace kvasir::core
