// What a request asks of its logits, against a twin that keeps the whole history and computes in double precision.
#include "engine/logit_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/prng.hpp"
#include "engine/row_math.hpp"
#include "engine/sampler.hpp"

namespace kvasir::engine {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr std::uint32_t kVocabulary = 300;

struct History {
  std::vector<TokenId> prompt, output, ends;
};

// The order of sampling_params.hpp, written down plainly.
std::vector<double> by_the_book(const std::vector<float>& raw, const SamplingParams& p, const History& h) {
  std::vector<double> x(raw.begin(), raw.end());
  const auto at = [&x](TokenId token) -> double& { return x[static_cast<std::size_t>(token)]; };
  const auto has = [](const std::vector<TokenId>& list, TokenId token) { return std::ranges::count(list, token); };
  for (TokenId t = 0; t < static_cast<TokenId>(x.size()); ++t) {
    if (!p.allowed_token_ids.empty() && has(p.allowed_token_ids, t) == 0) at(t) = kBanned;
  }
  for (const std::vector<TokenId>& word : p.bad_words) {
    if (word.size() > h.output.size() + 1) continue;
    if (std::equal(word.begin(), word.end() - 1, h.output.end() - static_cast<std::ptrdiff_t>(word.size() - 1))) {
      at(word.back()) = kBanned;
    }
  }
  if (h.output.size() < p.min_tokens) {
    for (const TokenId t : h.ends) at(t) = kBanned;
    for (const TokenId t : p.stop_token_ids) at(t) = kBanned;
  }
  for (const LogitBias& b : p.logit_bias) at(b.token) += static_cast<double>(b.bias);
  for (TokenId t = 0; t < static_cast<TokenId>(x.size()); ++t) {
    const auto outputs = static_cast<double>(has(h.output, t));
    if (outputs > 0 || has(h.prompt, t) > 0) {
      const auto penalty = static_cast<double>(p.repetition_penalty);
      at(t) = at(t) > 0 ? at(t) / penalty : at(t) * penalty;
    }
    at(t) -= static_cast<double>(p.frequency_penalty) * outputs;
    if (outputs > 0) at(t) -= static_cast<double>(p.presence_penalty);
  }
  return x;
}

// Seeded values; each feature is off in about half of the requests.
class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed, 0x10) {}
  bool flip() { return random_.below(2) == 0; }
  std::uint32_t below(std::uint32_t bound) { return random_.below(bound); }
  float between(float low, float high) { return low + random_.uniform() * (high - low); }
  TokenId token() { return static_cast<TokenId>(random_.below(kVocabulary)); }
  std::vector<TokenId> tokens(std::uint32_t most) {
    std::vector<TokenId> list(random_.below(most + 1));
    // Few different ones, so that they repeat.
    for (TokenId& t : list) t = flip() ? token() : static_cast<TokenId>(random_.below(12));
    return list;
  }
  std::vector<float> row() {
    std::vector<float> row(kVocabulary);
    for (float& x : row) x = between(-8, 8);
    return row;
  }
  SamplingParams params() {
    SamplingParams p;
    if (flip()) p.presence_penalty = between(-2, 2);
    if (flip()) p.frequency_penalty = between(-2, 2);
    if (flip()) p.repetition_penalty = between(0.5, 2);
    if (flip()) p.allowed_token_ids = tokens(200);
    if (flip()) p.min_tokens = below(20);
    if (flip()) p.stop_token_ids = tokens(5);
    for (TokenId t = 0; flip() && t < 200; t += 1 + static_cast<TokenId>(below(9)))
      p.logit_bias.push_back({t, between(-9, 9)});
    for (std::uint32_t i = below(8); i > 0; --i) {
      p.bad_words.emplace_back();
      for (std::uint32_t n = 1 + below(3); n > 0; --n) p.bad_words.back().push_back(static_cast<TokenId>(below(12)));
    }
    return p;
  }

 private:
  PhiloxSequence random_;
};

TEST(LogitRules, EqualTheTwinAtEveryLength) {
  int banned = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const SamplingParams params = random.params();
    ASSERT_TRUE(validate(params).ok());
    History h{.prompt = random.tokens(60), .output = {}, .ends = {1, 2}};
    LogitRules rules(params, h.prompt, h.ends, 25);
    for (int step = 0; step < 25; ++step) {
      const std::vector<float> raw = random.row();
      std::vector<float> got(kVocabulary);
      rules.apply(raw, got);
      const std::vector<double> expected = by_the_book(raw, params, h);
      for (std::size_t t = 0; t < kVocabulary; ++t) {
        if (expected[t] == static_cast<double>(kBanned)) {
          ASSERT_EQ(got[t], kBanned) << "seed " << seed << " step " << step << " token " << t;
          ++banned;
        } else {
          // Four float operations on values that stay under 100: four half units in the last place of 128.
          ASSERT_NEAR(static_cast<double>(got[t]), expected[t], 4 * 0x1p-18) << "seed " << seed << " token " << t;
          moved += got[t] != raw[t];
        }
      }
      const TokenId next = random.flip() ? random.token() : static_cast<TokenId>(random.below(12));
      h.output.push_back(next);
      rules.push(next);
    }
  }
  EXPECT_GT(banned, 10'000);
  EXPECT_GT(moved, 10'000);
}

TEST(LogitRules, NeededOnlyWhereSomethingIsAsked) {
  EXPECT_FALSE(LogitRules::needed_by({}));
  EXPECT_FALSE(LogitRules::needed_by({.temperature = 1, .top_k = 3, .top_p = 0.5f, .min_p = 0.1f, .logprobs = 4}));
  EXPECT_FALSE(LogitRules::needed_by({.stop_token_ids = {3}}));  // ends answers, changes no logit
  EXPECT_TRUE(LogitRules::needed_by({.presence_penalty = 0.1f}));
  EXPECT_TRUE(LogitRules::needed_by({.frequency_penalty = -0.1f}));
  EXPECT_TRUE(LogitRules::needed_by({.repetition_penalty = 1.1f}));
  EXPECT_TRUE(LogitRules::needed_by({.logit_bias = {{1, 0.5f}}}));
  EXPECT_TRUE(LogitRules::needed_by({.allowed_token_ids = {1}}));
  EXPECT_TRUE(LogitRules::needed_by({.min_tokens = 1}));
  EXPECT_TRUE(LogitRules::needed_by({.bad_words = {{1}}}));
}

TEST(LogitRules, PenaltiesCountEachTokenOfTheAnswer) {
  const SamplingParams params{.presence_penalty = 0.5f, .frequency_penalty = 0.25f, .repetition_penalty = 2};
  const std::vector<TokenId> prompt = {0, 0, 1};
  LogitRules rules(params, prompt, {}, 4);
  const std::vector<float> raw = {4, -4, 4, 4};
  std::vector<float> out(4);
  rules.apply(raw, out);
  EXPECT_EQ(out, (std::vector<float>{2, -8, 4, 4}));  // of the prompt only repetition takes notice, once a token
  for (const TokenId t : {2, 0, 2, 2}) rules.push(t);
  rules.apply(raw, out);
  EXPECT_EQ(out, (std::vector<float>{2 - 0.25f - 0.5f, -8, 2 - 0.75f - 0.5f, 4}));
}

TEST(LogitRules, ABadWordIsBannedOnlyWhereItsStartStands) {
  const SamplingParams params{.bad_words = {{5, 6, 7}, {7, 8}, {9}}};
  LogitRules rules(params, std::vector<TokenId>{5, 6}, {}, 8);  // the prompt is no part of the answer
  const std::vector<float> raw(10, 1.0f);
  std::vector<float> out(10);
  const auto banned = [&] {
    std::vector<TokenId> list;
    rules.apply(raw, out);
    for (TokenId t = 0; t < 10; ++t) {
      if (out[static_cast<std::size_t>(t)] == kBanned) list.push_back(t);
    }
    return list;
  };
  EXPECT_EQ(banned(), (std::vector<TokenId>{9}));
  rules.push(5);
  EXPECT_EQ(banned(), (std::vector<TokenId>{9}));
  rules.push(6);
  EXPECT_EQ(banned(), (std::vector<TokenId>{7, 9}));
  rules.push(7);
  EXPECT_EQ(banned(), (std::vector<TokenId>{8, 9}));
  rules.push(6);
  EXPECT_EQ(banned(), (std::vector<TokenId>{9}));
}

TokenId choose(const std::vector<float>& row, const SamplingParams& params, const LogitRules& rules) {
  platform::ThreadPool pool(1);
  Sampler sampler(static_cast<std::uint32_t>(row.size()), 1, platform::Isa::scalar);
  SampleRow one;
  one.logits = row;
  one.params = &params;
  one.rules = &rules;
  sampler.sample({&one, 1}, pool);
  return one.token;
}

TEST(LogitRules, BansGiveWayWhereTheyLeaveNothing) {
  const std::vector<float> row = {3, 2, 1, 5};
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params{.temperature = temperature, .allowed_token_ids = {2, 1}, .min_tokens = 4};
    LogitRules stuck(params, {}, std::vector<TokenId>{1, 2}, 8);
    const TokenId token = choose(row, params, stuck);
    EXPECT_TRUE(token == 1 || token == 2) << token;
    LogitRules one_left(params, {}, std::vector<TokenId>{1}, 8);
    EXPECT_EQ(choose(row, params, one_left), 2);
    const std::vector<float> no_number(4, std::nanf(""));
    EXPECT_EQ(choose(no_number, params, one_left), 1);  // the lowest that is allowed
  }
}

TEST(LogitRules, LogprobsStayThoseOfTheRawRow) {
  const std::vector<float> row = {3, 2, 1, 5};
  const SamplingParams params{.logprobs = 2, .allowed_token_ids = {2}};
  LogitRules rules(params, {}, {}, 8);
  platform::ThreadPool pool(1);
  Sampler sampler(4, 1, platform::Isa::scalar);
  SampleRow one;
  one.logits = row;
  one.params = &params;
  one.rules = &rules;
  sampler.sample({&one, 1}, pool);
  const double log_sum = std::log(std::exp(3.0) + std::exp(2.0) + std::exp(1.0) + std::exp(5.0));
  EXPECT_EQ(one.token, 2);
  EXPECT_NEAR(static_cast<double>(one.logprob), 1 - log_sum, 1e-6);
  EXPECT_EQ(one.top[0].token, 3);
  EXPECT_NEAR(static_cast<double>(one.top[0].logprob), 5 - log_sum, 1e-6);
}

TEST(LogitRules, AGivenTokenIsScoredNotSampled) {
  const std::vector<float> row = {3, 2, 1, 5, 2, std::nanf("")};
  platform::ThreadPool pool(1);
  Sampler sampler(6, 1, platform::Isa::scalar);
  const SamplingParams params{.logprobs = 1};
  const double log_sum = std::log(std::exp(3.0) + 2 * std::exp(2.0) + std::exp(1.0) + std::exp(5.0));
  const std::vector<std::uint32_t> ranks = {2, 3, 5, 1, 4};  // of equals the lowest id first
  for (TokenId token = 0; token < 5; ++token) {
    SampleRow one;
    one.logits = row;
    one.params = &params;
    one.given = token;
    sampler.sample({&one, 1}, pool);
    EXPECT_EQ(one.token, token);
    EXPECT_EQ(one.rank, ranks[static_cast<std::size_t>(token)]);
    EXPECT_NEAR(static_cast<double>(one.logprob), static_cast<double>(row[static_cast<std::size_t>(token)]) - log_sum,
                1e-6);
    EXPECT_EQ(one.top[0].token, 3);
  }
  EXPECT_EQ(rank_of(row, 5), 6u);
}

std::string message(const SamplingParams& p) {
  const Status status = validate(p);
  return status.ok() ? std::string() : status.error().message;
}

TEST(LogitRules, RangesAreNamed) {
  EXPECT_EQ(message({.presence_penalty = 2.5f}), "presence_penalty is 2.5, valid: -2 to 2");
  EXPECT_EQ(message({.frequency_penalty = std::nanf("")}), "frequency_penalty is nan, valid: -2 to 2");
  EXPECT_EQ(message({.repetition_penalty = 0}), "repetition_penalty is 0, valid: 0.01 to 100");
  EXPECT_EQ(message({.logit_bias = {{7, 101}}}), "logit_bias of token 7 is 101, valid: -100 to 100");
  EXPECT_EQ(message({.logit_bias = {{7, 1}, {3, 1}, {7, 2}}}), "logit_bias names token 7 twice, valid: once each");
  EXPECT_EQ(message({.stop_token_ids = std::vector<TokenId>(129, 1)}),
            "stop_token_ids has 129 entries, valid: at most 128");
  EXPECT_EQ(message({.bad_words = {{1}, {}}}), "bad_words 1 has 0 tokens, valid: 1 to 64 each");
  const auto out_of_vocabulary = [](const SamplingParams& p) {
    const Status status = validate_tokens(p, 10);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(
      out_of_vocabulary({.logit_bias = {{9, 1}}, .allowed_token_ids = {0}, .stop_token_ids = {9}, .bad_words = {{9}}}),
      "");
  EXPECT_EQ(out_of_vocabulary({.logit_bias = {{10, 1}}}), "logit_bias has token 10, valid: 0 to 9 (the vocabulary)");
  EXPECT_EQ(out_of_vocabulary({.allowed_token_ids = {-1}}),
            "allowed_token_ids has token -1, valid: 0 to 9 (the vocabulary)");
  EXPECT_EQ(out_of_vocabulary({.bad_words = {{1}, {1, 12}}}), "bad_words has token 12, valid: 0 to 9 (the vocabulary)");
  EXPECT_EQ(out_of_vocabulary({.allowed_token_ids = std::vector<TokenId>(11, 1)}),
            "allowed_token_ids has 11 entries, valid: at most 10");
  EXPECT_EQ(out_of_vocabulary({.allowed_token_ids = {2, 3}, .bad_words = {{3}, {1, 2}, {2}}}),
            "allowed_token_ids has only tokens that bad_words forbids, valid: at least one other");
  EXPECT_EQ(out_of_vocabulary({.allowed_token_ids = {2, 3}, .bad_words = {{3}, {1, 2}}}), "");
}

}  // namespace
}  // namespace kvasir::engine
