// Penalties, biases, bans, stop tokens and prompt log probabilities through a whole engine: what a request gets depends
// on its own prompt and parameters, whatever runs beside it and however its prompt is cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/prng.hpp"
#include "engine/row_math.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using ::testing::HasSubstr;

// Everything that a request gave out, in order.
struct Scored {
  TokenId token = -1;
  std::uint32_t position = 0, rank = 0;
  float logprob = 0;
  std::vector<std::pair<TokenId, float>> top;
  bool operator==(const Scored&) const = default;
};
struct Transcript {
  std::vector<Scored> prompt, answer;
  std::string text;
  FinishReason finish = FinishReason::none;
  std::int32_t stop_index = -1;
  TokenId stop_token = -1;
  bool operator==(const Transcript&) const = default;
};

std::map<RequestId, Transcript> run_all(Engine& engine) {
  std::map<RequestId, Transcript> all;
  std::vector<TokenOutput> out;
  while (engine.has_work()) {
    engine.step(out);
    engine.check_invariants();
    for (const TokenOutput& o : out) {
      Transcript& t = all[o.request];
      Scored scored{.token = o.token,
                    .position = o.position,
                    .rank = o.rank,
                    .logprob = o.has_logprob ? o.logprob : 0,
                    .top = {}};
      for (const TokenLogprob& top : o.top_logprobs) scored.top.emplace_back(top.token, top.logprob);
      if (o.token >= 0) (o.prompt ? t.prompt : t.answer).push_back(scored);
      t.text += o.text;
      EXPECT_EQ(t.finish, FinishReason::none) << "nothing follows the last output";
      t.finish = o.finish;
      t.stop_index = o.stop_index;
      t.stop_token = o.stop_token;
    }
  }
  return all;
}

Transcript run_one(Engine& engine, const GenerateRequest& request) {
  const RequestId id = engine.submit(request).value();
  return run_all(engine).at(id);
}

// A request with a mix of features that its seed decides.
GenerateRequest mixed(std::uint64_t seed) {
  PhiloxSequence random(seed, 0x77);
  const auto flip = [&random] { return random.below(2) == 0; };
  GenerateRequest r = request_of(random_prompt(5 + random.below(90), seed), 4 + random.below(24));
  SamplingParams& p = r.sampling;
  if (flip()) p = {.temperature = 0.9f, .top_k = random.below(2) * 40, .top_p = flip() ? 0.9f : 1.0f};
  p.seed = seed;
  p.choice = random.below(3);
  p.logprobs = static_cast<std::int32_t>(random.below(6)) - 1;
  if (flip()) p.presence_penalty = random.uniform() * 4 - 2;
  if (flip()) p.frequency_penalty = random.uniform() * 4 - 2;
  if (flip()) p.repetition_penalty = 0.7f + random.uniform();
  for (TokenId t = 0; flip() && t < 280; t += 20) p.logit_bias.push_back({t, random.uniform() * 6 - 3});
  if (random.below(4) == 0) {
    for (TokenId t = 3; t < 250; t += 2) p.allowed_token_ids.push_back(t);
  }
  if (flip()) p.min_tokens = random.below(4);
  if (flip()) p.stop_token_ids = {static_cast<TokenId>(random.below(288)), static_cast<TokenId>(random.below(288))};
  for (TokenId t = 3; flip() && t < 250; t += 5) p.bad_words.push_back({t});
  if (flip()) r.prompt_logprobs = static_cast<std::int32_t>(random.below(4));
  if (flip()) r.stop = {"a", "zz"};
  r.ignore_eos = flip();
  return r;
}

TEST(SamplingFeatures, TogetherAndAloneAreTheSame) {
  constexpr std::uint64_t kRequests = 48;
  auto solo = make_engine(shared_gqa(), pool_of(64), true);
  std::vector<Transcript> alone;
  for (std::uint64_t i = 0; i < kRequests; ++i) alone.push_back(run_one(*solo, mixed(i)));

  PoolConfig config = pool_of(80);
  config.max_batched_tokens = 24;  // prompts are cut and mixed with answers
  config.threads = 2;
  auto engine = make_engine(shared_gqa(), config, true);
  std::vector<RequestId> ids;
  for (std::uint64_t i = 0; i < kRequests; ++i) ids.push_back(engine->submit(mixed(i)).value());
  const std::map<RequestId, Transcript> together = run_all(*engine);
  int stopped_by_token = 0;
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(together.at(ids[i]), alone[i]) << "request " << i;
    stopped_by_token += alone[i].stop_token >= 0;
  }
  EXPECT_GT(stopped_by_token, 0);
}

// The greedy answer from the logits that the engine showed, computed from scratch at every position.
TEST(SamplingFeatures, GreedyTokensFollowFromTheLogits) {
  int differs_from_raw = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto engine = make_engine(shared_gqa(), pool_of(32));
    std::vector<std::vector<float>> rows;
    engine->set_logits_observer([&](RequestId, std::uint32_t, std::span<const float> logits) {
      rows.emplace_back(logits.begin(), logits.end());
    });
    GenerateRequest request = request_of(random_prompt(30, seed), 30);
    request.sampling = {.presence_penalty = 0.6f,
                        .frequency_penalty = 0.3f,
                        .repetition_penalty = 1.3f,
                        .logit_bias = {{5, 1.5f}, {60, -2}},
                        .bad_words = {{40}, {50}}};
    const Transcript got = run_one(*engine, request);
    ASSERT_EQ(rows.size(), 30u);
    std::vector<TokenId> output;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TokenId best = -1;
      double best_logit = 0;
      for (TokenId t = 0; t < static_cast<TokenId>(rows[i].size()); ++t) {
        if (t == 40 || t == 50) continue;
        double x = static_cast<double>(rows[i][static_cast<std::size_t>(t)]) + (t == 5 ? 1.5 : t == 60 ? -2 : 0);
        const auto outputs = static_cast<double>(std::ranges::count(output, t));
        if (outputs > 0 || std::ranges::count(request.prompt, t) > 0) x = x > 0 ? x / 1.3 : x * 1.3;
        x -= 0.3 * outputs + (outputs > 0 ? 0.6 : 0);
        if (best < 0 || x > best_logit) {
          best = t;
          best_logit = x;
        }
      }
      ASSERT_EQ(got.answer[i].token, best) << "seed " << seed << " token " << i;
      output.push_back(best);
      std::vector<float> blocks(row_blocks(rows[i].size()));
      differs_from_raw += row_max(rows[i], blocks).token != best;
    }
  }
  EXPECT_GT(differs_from_raw, 50);  // the rules decided
}

// Known fault B37 has a cached prefix; here the prompt's cuts, the room for logits and the neighbours vary.
TEST(SamplingFeatures, PromptLogprobsDoNotDependOnHowThePromptIsCut) {
  GenerateRequest request = request_of(random_prompt(70, 8), 5);
  request.prompt_logprobs = 3;
  request.sampling.logprobs = 2;
  std::vector<std::vector<float>> rows(70);
  Transcript expected;
  for (const std::uint32_t chunk : {70u, 69u, 33u, 16u, 8u}) {
    for (const std::uint32_t logits_rows : {70u, 8u}) {
      PoolConfig config = pool_of(64);
      config.max_batched_tokens = chunk;
      config.logits_rows = std::min(chunk, logits_rows);
      auto engine = make_engine(shared_gqa(), config);
      if (expected.prompt.empty()) {
        engine->set_logits_observer([&](RequestId, std::uint32_t position, std::span<const float> logits) {
          if (position < 70) rows[position].assign(logits.begin(), logits.end());
        });
      } else {
        ASSERT_TRUE(engine->submit(mixed(300)).ok());  // a neighbour
      }
      const RequestId id = engine->submit(request).value();
      const Transcript got = run_all(*engine).at(id);
      if (expected.prompt.empty()) expected = got;
      EXPECT_EQ(got, expected) << "chunks of " << chunk << ", " << logits_rows << " rows of logits";
    }
  }
  ASSERT_EQ(expected.prompt.size(), 69u);
  ASSERT_EQ(expected.answer.size(), 5u);
  for (std::size_t i = 0; i < 69; ++i) {
    const Scored& s = expected.prompt[i];
    EXPECT_EQ(s.position, i + 1);
    EXPECT_EQ(s.token, request.prompt[i + 1]);
    double sum = 0;
    std::uint32_t above = 0;
    for (const float x : rows[i]) {
      sum += std::exp(static_cast<double>(x));
      above += x > rows[i][static_cast<std::size_t>(s.token)];
    }
    EXPECT_NEAR(static_cast<double>(s.logprob),
                static_cast<double>(rows[i][static_cast<std::size_t>(s.token)]) - std::log(sum), 1e-5);
    EXPECT_EQ(s.rank, above + 1);
    ASSERT_EQ(s.top.size(), 3u);
    EXPECT_EQ(s.top[0].first, static_cast<TokenId>(std::ranges::max_element(rows[i]) - rows[i].begin()));
    EXPECT_GE(s.top[0].second, s.top[1].second);
  }
}

TEST(SamplingFeatures, APromptMayBeScoredAlone) {
  auto engine = make_engine(shared_gqa(), pool_of(16));
  GenerateRequest request = request_of(random_prompt(40, 2), 0);
  request.prompt_logprobs = 0;
  const Transcript got = run_one(*engine, request);
  EXPECT_EQ(got.prompt.size(), 39u);
  EXPECT_TRUE(got.answer.empty());
  EXPECT_EQ(got.finish, FinishReason::length);
  request.prompt = {5};
  EXPECT_TRUE(run_one(*engine, request).prompt.empty());  // the first token follows nothing
  request.prompt_logprobs = 21;
  EXPECT_THAT(engine->submit(request).error().message,
              HasSubstr("prompt_logprobs is 21, valid: -1 (none), or 0 to 20"));
}

TEST(SamplingFeatures, NothingEndsAnAnswerBeforeMinTokens) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const auto tokenizer = tiny_tokenizer();
  int shorter_without = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    GenerateRequest request = request_of(random_prompt(12, seed), 60);
    request.sampling = {.temperature = 1.5f, .seed = seed, .stop_token_ids = {10, 20, 30, 40, 50, 60, 70}};
    request.stop = {"a", "e"};
    const std::size_t without = run_one(*engine, request).answer.size();
    request.sampling.min_tokens = 20;
    const Transcript with = run_one(*engine, request);
    ASSERT_GE(with.answer.size(), 20u);
    shorter_without += without < 20;
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_FALSE(tokenizer->is_eog(with.answer[i].token));
      EXPECT_EQ(std::ranges::count(request.sampling.stop_token_ids, with.answer[i].token), 0);
    }
    if (with.finish == FinishReason::stop) {
      EXPECT_GT(with.answer.size(), 20u);
    }
  }
  EXPECT_GT(shorter_without, 10);
  GenerateRequest request = request_of({5}, 4);
  request.sampling.min_tokens = 5;
  EXPECT_THAT(engine->submit(request).error().message, HasSubstr("min_tokens is 5, valid: 0 to max_tokens (4)"));
}

TEST(SamplingFeatures, ChoicesOfOneSeedDiffer) {
  auto engine = make_engine(shared_gqa(), pool_of(32));
  GenerateRequest request = request_of(random_prompt(12, 1), 20);
  request.sampling = {.temperature = 1, .seed = 3, .presence_penalty = 0.5f};
  const Transcript first = run_one(*engine, request);
  EXPECT_EQ(run_one(*engine, request), first);
  request.sampling.choice = 1;
  EXPECT_NE(run_one(*engine, request).answer, first.answer);
}

}  // namespace
}  // namespace kvasir::engine::test
