// Random minutes of serving under virtual time, held against what batching promises.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/prng.hpp"
#include "tests/core/virtual_run.hpp"
#include "tests/sched/machine.hpp"

namespace kvasir::core::test {
namespace {

using sched::test::kSmallModel;
using sched::test::Machine;

constexpr std::uint32_t kMinChunk = 16;

CoreConfig random_config(PhiloxSequence& random) {
  CoreConfig config;
  config.cache.groups = {{16, 40 + random.below(100), random.below(3)}};
  switch (random.below(4)) {
    case 0:
      config.cache.groups.push_back({32, 30 + random.below(40), 0});
      break;
    case 1:  // a window with blocks of its own
      config.cache.groups.push_back({16, 80 + random.below(40), 0, {1 + random.below(200)}});
      break;
    case 2: {  // and in one arena with the first
      const std::uint32_t superpages = 30 + random.below(20);
      config.cache.groups = {{16, superpages * 3, random.below(3), {}, 3},
                             {16, superpages * 2, 0, {1 + random.below(100), random.below(2) == 0}, 2}};
      break;
    }
    default:
      break;
  }
  config.cache.max_sequence_rows = 700;
  config.limits.max_num_seqs = 2 + random.below(12);
  config.limits.max_num_batched_tokens = 32 + random.below(300);
  config.limits.itl_target_s = random.below(3) == 0 ? 0 : 1e-3 * (20 + random.below(80));
  config.limits.min_chunk = kMinChunk;
  config.max_requests = 64;
  config.policy.policy = random.below(2) == 0 ? sched::Policy::fcfs : sched::Policy::priority;
  config.policy.ageing_us = 1'000'000 * (1 + random.below(5));
  if (random.below(2) == 0) config.queue.max_queued_requests = 4 + random.below(20);
  if (random.below(2) == 0) config.queue.max_queued_tokens = 200 + random.below(2000);
  return config;
}

// One random run; its promises are checked as it goes and when it is over.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed)
      : random_(seed),
        noise_(seed, 1),
        config_(random_config(random_)),
        run_(config_, [this](const sched::StepWork& work) {
          return Machine{kSmallModel, 0.2f, 0.01f, 10}.seconds(work, noise_);
        }) {
    run_.on_plan = [this](const sched::StepPlan& plan) { check_plan(plan); };
    std::uint64_t at = 0;
    for (int i = 0; i < 120; ++i) {
      at += random_.below(8) == 0 ? random_.below(3'000'000) : random_.below(150'000);  // bursts and pauses
      const Arrival arrival{.prompt_tokens = 1 + random_.below(random_.below(4) == 0 ? 740 : 120),
                            .max_new_tokens = random_.below(60),
                            .priority = static_cast<std::int32_t>(random_.below(4)),
                            .stop_after = random_.below(3) == 0 ? 1 + random_.below(30) : 0};
      const std::uint32_t answers = random_.below(5) == 0 ? 2 + random_.below(4) : 1;
      for (std::uint32_t n = 0; n < answers; ++n) {
        Arrival one = arrival;
        if (answers > 1) one.family = static_cast<std::uint64_t>(i) + 1;
        const auto client = run_.arrive(at, one);
        if (random_.below(5) == 0) run_.hang_up(at + random_.below(2'000'000), client);
      }
    }
  }

  void play() {
    run_.run_to_end();
    check_end();
  }

  std::map<FinishReason, int> ended;
  std::map<RefusalReason, int> refused;
  int bound_steps = 0, admissions_out_of_arrival_order = 0;
  std::uint64_t shared_rows = 0;

 private:
  void check_plan(const sched::StepPlan& plan) {
    const Core& core = run_.core();
    for (std::uint32_t g = 0; g < core.cache().groups(); ++g) {
      const cache::GroupStats s = core.cache().stats(g);
      ASSERT_EQ(s.pool.active + s.pool.cached + s.pool.free + s.pool.quarantined, s.pool.total);
      if (config_.cache.groups[g].blocks_per_superpage == 0) {
        ASSERT_LE(s.claimed, s.pool.free + s.pool.cached - s.pool.pinned);
      }
    }
    // Every stream has its row, and the first prompt under way has its minimum.
    bool first_prompt = true;
    std::uint32_t streams = 0;
    for (const RequestId id : core.running()) {
      const Request& r = *core.find(id);
      const auto chunk = std::ranges::find(plan.chunks, id, &sched::Chunk::request);
      if (r.state == RequestState::decoding) {
        ++streams;
        ASSERT_TRUE(chunk != plan.chunks.end()) << "every stream gets its row in every step";
      } else if (first_prompt && !std::ranges::count(plan.admitted, id)) {
        first_prompt = false;
        ASSERT_TRUE(chunk != plan.chunks.end()) << "the first prompt always advances";
        const std::uint32_t room = config_.limits.max_num_batched_tokens - streams_in(plan);
        ASSERT_GE(chunk->token_count, std::min({kMinChunk, r.prompt_tokens - r.computed, room}));
      }
    }
    if (config_.limits.itl_target_s > 0 && streams > 0 && plan.work.prefill_rows > kMinChunk) {
      ASSERT_LE(plan.predicted_s, sched::kMostStretch * config_.limits.itl_target_s);
      ++bound_steps;
    }
    check_admissions(plan);
  }

  static std::uint32_t streams_in(const sched::StepPlan& plan) { return plan.work.decode_rows; }

  // Nobody is admitted before one who stands before him, and an unforced wait is never of the head's own making.
  void check_admissions(const sched::StepPlan& plan) {
    const Core& core = run_.core();
    for (const RequestId id : plan.admitted) {
      for (const RequestId waiting : core.queued()) {
        const bool for_its_prompt = core.find(waiting)->family != 0;
        ASSERT_TRUE(for_its_prompt || core.find(id)->place < core.find(waiting)->place);
        if (waiting < id) ++admissions_out_of_arrival_order;
      }
    }
    shared_rows = core.stats().shared_rows;
    if (core.queued().size() > core.stats().awaiting_prompt) {
      ASSERT_NE(plan.waiting, sched::WaitReason::none) << "who waits has a reason";
    }
    ASSERT_NE(plan.waiting, sched::WaitReason::never_fits);
  }

  void check_end() {
    const Core& core = run_.core();
    EXPECT_TRUE(core.idle()) << "everything ends";
    std::uint64_t most_steps = 0;
    for (const Client& client : run_.clients()) {
      if (!client.verdict.ok()) {
        ++refused[client.verdict.reason];
        continue;
      }
      ++ended[client.reason];
      EXPECT_NE(client.reason, FinishReason::none);
      EXPECT_NE(client.reason, FinishReason::error) << "nothing admitted fails";
      if (client.reason == FinishReason::length) {
        EXPECT_EQ(client.token_us.size(), client.arrival.max_new_tokens);
      }
      if (client.reason == FinishReason::stop) {
        EXPECT_EQ(client.token_us.size(), client.arrival.stop_after);
      }
      most_steps += (client.arrival.prompt_tokens + kMinChunk - 1) / kMinChunk + client.arrival.max_new_tokens + 1;
    }
    EXPECT_LE(run_.steps(), most_steps) << "every step brings the first prompt or every stream forward";
    for (std::uint32_t g = 0; g < core.cache().groups(); ++g) {
      EXPECT_EQ(core.cache().stats(g).pool.free, core.cache().stats(g).pool.total);
      EXPECT_EQ(core.cache().stats(g).claimed, 0u);
    }
    check_overtaking();
  }

  // Equals are admitted in order of arrival; others overtake by no more than their lead.
  void check_overtaking() const {
    const std::vector<Client>& clients = run_.clients();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      for (std::size_t j = i + 1; j < clients.size(); ++j) {
        const Client &first = clients[i], &second = clients[j];
        const bool overtaken = first.admitted && second.admitted && second.admitted_us < first.admitted_us;
        if (!overtaken || first.arrival.family != 0) continue;   // it may have waited for its prompt
        ASSERT_EQ(config_.policy.policy, sched::Policy::priority);
        const std::int64_t levels = first.arrival.priority - second.arrival.priority;
        ASSERT_GT(levels, 0) << "equals keep their order";
        ASSERT_LE(second.arrived_us - first.arrived_us, static_cast<std::uint64_t>(levels) * config_.policy.ageing_us);
      }
    }
  }

  PhiloxSequence random_, noise_;
  CoreConfig config_;
  VirtualRun run_;
};

TEST(RandomRuns, KeepEveryPromise) {
  std::map<FinishReason, int> ended;
  std::map<RefusalReason, int> refused;
  int bound_steps = 0, out_of_order = 0;
  std::uint64_t shared_rows = 0;
  for (std::uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomRun run(seed);
    run.play();
    for (const auto& [reason, count] : run.ended) ended[reason] += count;
    for (const auto& [reason, count] : run.refused) refused[reason] += count;
    bound_steps += run.bound_steps;
    out_of_order += run.admissions_out_of_arrival_order;
    shared_rows += run.shared_rows;
  }
  for (const FinishReason reason : {FinishReason::stop, FinishReason::length, FinishReason::cancelled})
    EXPECT_GT(ended[reason], 100) << to_string(reason);
  for (const RefusalReason reason : {RefusalReason::queue_requests, RefusalReason::queue_tokens})
    EXPECT_GT(refused[reason], 50) << to_string(reason);
  EXPECT_GT(refused[RefusalReason::context_length], 50);
  EXPECT_GT(bound_steps, 1000) << "the target was at work";
  EXPECT_GT(out_of_order, 100) << "so was priority";
  EXPECT_GT(shared_rows, 10'000u) << "and prompts were shared";
}

// Long prompts beside streams, on a noisy machine that the model has to learn: the gap between tokens keeps to the
// target. Sixteen streams at depth fill most of it; then a prompt has its share, and the gap still stays under twice the
// target, the prompt's first token under twice the time it takes alone.
class LongPrompts : public ::testing::TestWithParam<std::pair<std::uint64_t, double>> {};

double alone_s(const CoreConfig& config) {
  PhiloxSequence noise(9, 2);
  VirtualRun run(config, [&noise](const sched::StepWork& work) { return Machine{kSmallModel, 0.1f}.seconds(work, noise); });
  const auto client = run.arrive(0, {.prompt_tokens = 4000, .max_new_tokens = 4});
  run.run_to_end();
  return run.clients()[client].ttft_s();
}

TEST_P(LongPrompts, KeepTheTargetBesideStreams) {
  const auto [stream_count, most_p99_s] = GetParam();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CoreConfig config;
    config.cache.groups = {{16, 4000, 0}};
    config.cache.max_sequence_rows = 5000;
    config.limits = {.max_num_seqs = 32, .max_num_batched_tokens = 512, .itl_target_s = 50e-3};
    config.max_requests = 64;
    PhiloxSequence noise(seed, 2);
    VirtualRun run(config, [&noise](const sched::StepWork& work) {
      return Machine{kSmallModel, 0.1f}.seconds(work, noise);
    });
    std::vector<VirtualRun::ClientIndex> streams, prompts;
    for (std::uint64_t i = 0; i < stream_count; ++i)
      streams.push_back(run.arrive(i * 1000, {.prompt_tokens = 50, .max_new_tokens = 700}));
    for (std::uint64_t i = 0; i < 3; ++i)
      prompts.push_back(run.arrive(2'000'000 + i * 12'000'000, {.prompt_tokens = 4000, .max_new_tokens = 4}));
    run.run_to_end();
    std::vector<double> gaps;
    for (const auto stream : streams) std::ranges::copy(run.clients()[stream].itls_s(), std::back_inserter(gaps));
    EXPECT_LT(percentile(gaps, 0.99), most_p99_s);
    EXPECT_LT(percentile(gaps, 1), 100e-3);
    for (const auto prompt : prompts) {
      EXPECT_EQ(run.clients()[prompt].reason, FinishReason::length);
      EXPECT_LT(run.clients()[prompt].ttft_s(), 2 * alone_s(config));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Streams, LongPrompts, ::testing::Values(std::pair{8, 58e-3}, std::pair{16, 94e-3}),
                         [](const auto& test) { return fmt::format("beside_{}", test.param.first); });

}  // namespace
}  // namespace kvasir::core::test
