#include "engine/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/fixed_math.hpp"
#include "base/prng.hpp"
#include "engine/ranked_candidates.hpp"
#include "engine/row_math.hpp"

namespace kvasir::engine {
namespace {

std::vector<float> random_row(std::size_t size, std::uint64_t seed, float scale, bool ties = false) {
  PhiloxSequence random(seed);
  std::vector<float> row(size);
  for (float& x : row) {
    x = (random.uniform() + random.uniform() + random.uniform() - 1.5f) * scale;
    if (ties) x = std::round(x * 2) / 2;
  }
  return row;
}

std::vector<Candidate> sorted_candidates(const std::vector<float>& row) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < row.size(); ++i) all.push_back({row[i], static_cast<TokenId>(i)});
  std::ranges::sort(all, ranks_before);
  return all;
}

TEST(RankedCandidates, WalksTheWholeVocabularyInOrder) {
  for (const std::size_t size : {1u, 100u, 256u, 5000u}) {
    for (const float scale : {0.0f, 0.01f, 5.0f, 300.0f}) {
      const std::vector<float> row = random_row(size, size, scale, scale == 5.0f);
      std::vector<float> blocks(row_blocks(size));
      RankedCandidates ranked(static_cast<std::uint32_t>(size));
      for (int again = 0; again < 2; ++again) {   // a walk leaves nothing behind for the next
        ranked.start(row, blocks, row_max(row, blocks).value, 0.5f);
        for (const Candidate& expected : sorted_candidates(row)) {
          const auto got = ranked.next();
          ASSERT_TRUE(got);
          ASSERT_EQ(got->token, expected.token);
          ASSERT_EQ(got->logit, expected.logit);
        }
        EXPECT_FALSE(ranked.next());
      }
    }
  }
}

TEST(RankedCandidates, LeavesOutWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> row = {-inf, 1.0f, std::nanf(""), inf, -3e38f};
  std::vector<float> blocks(1);
  RankedCandidates ranked(5);
  ranked.start(row, blocks, row_max(row, blocks).value, 1.0f);
  EXPECT_EQ(ranked.next()->token, 3);
  EXPECT_EQ(ranked.next()->token, 1);
  EXPECT_EQ(ranked.next()->token, 4);
  EXPECT_FALSE(ranked.next());
}

// The contract of sampler.hpp, by sorting everything.
TokenId sample_by_the_book(const std::vector<float>& row, const SamplingParams& p, std::uint32_t position) {
  const std::vector<Candidate> order = sorted_candidates(row);
  if (p.greedy()) return order[0].token;
  const float scale = 1.0f / p.temperature, max = order[0].logit;
  const std::size_t k = p.top_k == 0 ? order.size() : std::min<std::size_t>(p.top_k, order.size());
  std::vector<double> weights;
  for (std::size_t i = 0; i < k; ++i) weights.push_back(static_cast<double>(exp_f32((order[i].logit - max) * scale)));
  double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (k == order.size()) whole = sum_exp(row, max, scale, platform::Isa::scalar);
  if (p.top_p < 1) {
    double running = 0;
    std::size_t n = 0;
    while (n < weights.size() && (n == 0 || running < static_cast<double>(p.top_p) * whole)) running += weights[n++];
    weights.resize(n);
  }
  while (weights.size() > 1 && weights.back() < static_cast<double>(p.min_p)) weights.pop_back();
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (k == order.size() && p.top_p >= 1 && p.min_p <= 0) sum = whole;
  const auto words = philox4x32({position, 0, p.choice, 0},
                                {static_cast<std::uint32_t>(p.seed), static_cast<std::uint32_t>(p.seed >> 32)});
  const double u = static_cast<double>(((std::uint64_t{words[1]} << 32) | words[0]) >> 11) * 0x1p-53;
  double running = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    running += weights[i];
    if (running > u * sum) return order[i].token;
  }
  return order[weights.size() - 1].token;
}

TokenId sample_one(Sampler& sampler, platform::ThreadPool& pool, const std::vector<float>& row,
                   const SamplingParams& params, std::uint32_t position) {
  SampleRow one;
  one.logits = row;
  one.params = &params;
  one.position = position;
  sampler.sample({&one, 1}, pool);
  return one.token;
}

TEST(Sampler, EqualsTheContractSortedOut) {
  platform::ThreadPool pool(1);
  std::map<TokenId, int> seen;
  for (const std::size_t size : {3u, 300u, 3000u}) {
    Sampler sampler(static_cast<std::uint32_t>(size), 1, platform::available_isas().back());
    for (const float temperature : {0.0f, 0.05f, 0.7f, 1.0f, 3.0f, 100.0f}) {
      for (const std::uint32_t top_k : {0u, 1u, 2u, 40u, 100'000u}) {
        for (const float top_p : {1.0f, 0.95f, 0.3f, 1e-6f}) {
          for (const float min_p : {0.0f, 0.05f, 1.0f}) {
            for (std::uint32_t i = 0; i < 3; ++i) {
              SamplingParams p{.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p, .seed = i};
              const std::vector<float> row = random_row(size, size + i, 6.0f, i == 1);
              const TokenId token = sample_one(sampler, pool, row, p, 17 * i);
              ASSERT_EQ(token, sample_by_the_book(row, p, 17 * i))
                  << size << " t " << temperature << " k " << top_k << " p " << top_p << " m " << min_p << " seed " << i;
              ++seen[token];
            }
          }
        }
      }
    }
  }
  EXPECT_GT(seen.size(), 100u);   // the draws really differ
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> row = {std::log(1.0f), std::log(2.0f), std::log(3.0f), std::log(4.0f)};
  platform::ThreadPool pool(1);
  Sampler sampler(4, 1, platform::Isa::scalar);
  const SamplingParams params{.temperature = 1.0f, .seed = 99};
  std::vector<int> counts(4, 0);
  constexpr int kDraws = 20'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sample_one(sampler, pool, row, params, i))];
  for (std::size_t t = 0; t < 4; ++t) {
    const double p = 0.1 * static_cast<double>(t + 1);
    const double deviation = std::sqrt(kDraws * p * (1 - p));   // 5 deviations: one failure in a million seeds
    EXPECT_NEAR(counts[t], kDraws * p, 5 * deviation);
  }
}

TEST(Sampler, RandomnessIsNamedBySeedChoiceAndPositionAlone) {
  const std::vector<float> row = random_row(1000, 3, 1.0f);
  platform::ThreadPool pool(1);
  Sampler sampler(1000, 1, platform::Isa::scalar);
  const SamplingParams base{.temperature = 1.0f, .seed = 7};
  SamplingParams choice = base, seed = base, high_seed = base;
  choice.choice = 1;
  seed.seed = 8;
  high_seed.seed = base.seed + (std::uint64_t{1} << 32);
  int differ[4] = {};
  for (std::uint32_t i = 0; i < 50; ++i) {
    const TokenId token = sample_one(sampler, pool, row, base, i);
    EXPECT_EQ(token, sample_one(sampler, pool, row, base, i));
    differ[0] += token != sample_one(sampler, pool, row, choice, i);
    differ[1] += token != sample_one(sampler, pool, row, seed, i);
    differ[2] += token != sample_one(sampler, pool, row, high_seed, i);
    differ[3] += token != sample_one(sampler, pool, row, base, i + 1000);
  }
  for (const int d : differ) EXPECT_GT(d, 40);
}

TEST(Sampler, ThreadsAndNeighboursDoNotShow) {
  constexpr std::uint32_t kVocabulary = 2000;
  std::vector<std::vector<float>> logits;
  std::vector<SamplingParams> params;
  for (std::uint32_t i = 0; i < 33; ++i) {
    logits.push_back(random_row(kVocabulary, i, 4.0f, i % 3 == 0));
    params.push_back({.temperature = i % 4 == 0 ? 0.0f : 0.8f, .top_k = i % 5 * 10, .top_p = i % 2 ? 0.9f : 1.0f,
                      .seed = i, .logprobs = static_cast<std::int32_t>(i % 7) - 1});
  }
  const auto run = [&](std::size_t threads, std::size_t at_once) {
    platform::ThreadPool pool(threads);
    Sampler sampler(kVocabulary, threads, platform::available_isas().back());
    std::vector<SampleRow> rows(33);
    for (std::uint32_t i = 0; i < 33; ++i) {
      rows[i].logits = logits[i];
      rows[i].params = &params[i];
      rows[i].position = i;
    }
    for (std::size_t i = 0; i < 33; i += at_once) {
      sampler.sample(std::span(rows).subspan(i, std::min(at_once, 33 - i)), pool);
    }
    return rows;
  };
  const std::vector<SampleRow> expected = run(1, 1);
  for (const auto& [threads, at_once] : {std::pair{1, 33}, std::pair{2, 33}, std::pair{3, 4}}) {
    const std::vector<SampleRow> got = run(static_cast<std::size_t>(threads), static_cast<std::size_t>(at_once));
    for (std::size_t i = 0; i < 33; ++i) {
      EXPECT_EQ(got[i].token, expected[i].token);
      EXPECT_EQ(got[i].logprob, expected[i].logprob);
      ASSERT_EQ(got[i].top_count, expected[i].top_count);
      for (std::size_t j = 0; j < got[i].top_count; ++j) EXPECT_EQ(got[i].top[j].token, expected[i].top[j].token);
    }
  }
}

TEST(Sampler, LogprobsAreOfRawLogits) {
  const std::vector<float> row = random_row(5000, 11, 5.0f, true);
  platform::ThreadPool pool(1);
  Sampler sampler(5000, 1, platform::Isa::scalar);
  const SamplingParams params{.temperature = 0.3f, .top_k = 3, .seed = 5, .logprobs = 20};
  SampleRow out;
  out.logits = row;
  out.params = &params;
  sampler.sample({&out, 1}, pool);
  long double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<long double>(x));
  const auto expected = [&](TokenId token) {
    return static_cast<double>(static_cast<long double>(row[static_cast<std::size_t>(token)]) - std::log(sum));
  };
  EXPECT_NEAR(static_cast<double>(out.logprob), expected(out.token), 2e-6);
  ASSERT_EQ(out.top_count, 20u);
  const std::vector<Candidate> order = sorted_candidates(row);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(out.top[i].token, order[i].token);
    EXPECT_NEAR(static_cast<double>(out.top[i].logprob), expected(out.top[i].token), 2e-6);
  }
}

TEST(Sampler, NothingToChooseFromIsTokenZeroAndNoCrash) {
  const std::vector<float> row(300, std::nanf(""));
  platform::ThreadPool pool(1);
  Sampler sampler(300, 1, platform::Isa::scalar);
  for (const float temperature : {0.0f, 1.0f}) {
    for (const float top_p : {1.0f, 0.5f}) {
      const SamplingParams params{.temperature = temperature, .top_p = top_p, .logprobs = 2};
      EXPECT_EQ(sample_one(sampler, pool, row, params, 0), 0);
    }
  }
}

TEST(SamplingParams, RangesAreNamed) {
  const auto message = [](const SamplingParams& p) {
    const Status status = validate(p);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = -0.5f}), "temperature is -0.5, valid: 0 (greedy) to 100");
  EXPECT_EQ(message({.temperature = std::nanf("")}), "temperature is nan, valid: 0 (greedy) to 100");
  EXPECT_EQ(message({.top_p = 0}), "top_p is 0, valid: above 0, up to 1 (all)");
  EXPECT_EQ(message({.top_p = 1.5f}), "top_p is 1.5, valid: above 0, up to 1 (all)");
  EXPECT_EQ(message({.min_p = -1}), "min_p is -1, valid: 0 (all) to 1");
  EXPECT_EQ(message({.logprobs = 21}), "logprobs is 21, valid: -1 (none), or 0 to 20 alternatives");
}

}  // namespace
}  // namespace kvasir::engine
