#include "engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/prng.hpp"
#include "engine/row_math.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using ::testing::HasSubstr;

std::string refusal(Engine& engine, GenerateRequest request, ErrorCode code) {
  const Result<RequestId> id = engine.submit(std::move(request));
  if (id.ok()) return "accepted";
  EXPECT_EQ(id.error().code, code) << id.error().message;
  engine.check_invariants();
  return id.error().message;
}

TEST(Engine, AnswersAloneAndTogetherAreTheSame) {
  std::vector<Answered> alone;
  for (std::uint64_t i = 0; i < 5; ++i) {
    auto engine = make_engine(shared_gqa(), pool_of(64));
    GenerateRequest request = request_of(random_prompt(20 + 17 * static_cast<std::uint32_t>(i), i), 12);
    if (i % 2 == 1) request.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = i};
    alone.push_back(answer(*engine, request));
    EXPECT_EQ(alone.back().tokens.size(), 12u);
    EXPECT_EQ(alone.back().finish, FinishReason::length);
  }
  auto engine = make_engine(shared_gqa(), pool_of(64));
  std::vector<RequestId> ids;
  std::map<RequestId, std::vector<TokenId>> got;
  for (std::uint64_t i = 0; i < 5; ++i) {
    GenerateRequest request = request_of(random_prompt(20 + 17 * static_cast<std::uint32_t>(i), i), 12);
    if (i % 2 == 1) request.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = i};
    ids.push_back(engine->submit(request).value());
  }
  std::vector<TokenOutput> out;
  bool mixed = false;
  while (engine->has_work()) {
    const StepReport report = engine->step(out);
    engine->check_invariants();
    mixed = mixed || (report.prefill_tokens > 0 && report.decode_tokens > 0);
    for (const TokenOutput& o : out) got[o.request].push_back(o.token);
  }
  EXPECT_TRUE(mixed);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(got[ids[i]], alone[i].tokens) << i;
}

TEST(Engine, TwoPoolsOverOneModel) {
  auto a = make_engine(shared_gqa(), pool_of(16)), b = make_engine(shared_gqa(), pool_of(64, 32));
  EXPECT_EQ(answer(*a, request_of(random_prompt(30, 1), 6)).tokens, answer(*b, request_of(random_prompt(30, 1), 6)).tokens);
}

TEST(Engine, WithNoWorkAStepDoesNothing) {
  auto engine = make_engine(shared_gqa(), pool_of(4));
  std::vector<TokenOutput> out(3);
  EXPECT_FALSE(engine->has_work());
  EXPECT_FALSE(engine->step(out).ran);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(engine->stats().steps, 0u);
}

TEST(Engine, BadRequestsAreRefusedAtOnce) {
  auto engine = make_engine(shared_gqa(), pool_of(16));
  EXPECT_THAT(refusal(*engine, request_of({}, 4), ErrorCode::bad_input), HasSubstr("prompt has 0 tokens"));
  EXPECT_THAT(refusal(*engine, request_of({5, 288}, 4), ErrorCode::bad_input),
              HasSubstr("token 1 of the prompt is 288, valid: 0 to 287"));
  EXPECT_THAT(refusal(*engine, request_of({-1}, 4), ErrorCode::bad_input), HasSubstr("token 0 of the prompt is -1"));
  EXPECT_THAT(refusal(*engine, request_of({5}, 0), ErrorCode::bad_input), HasSubstr("max_tokens is 0"));
  GenerateRequest request = request_of({5}, 4);
  request.sampling.top_p = 2;
  EXPECT_THAT(refusal(*engine, request, ErrorCode::bad_input), HasSubstr("top_p is 2"));
  request = request_of({5}, 4);
  request.stop = {"x"};
  EXPECT_THAT(refusal(*engine, request, ErrorCode::bad_input), HasSubstr("stop strings need a tokenizer"));
  for (const auto& [stop, message] : {std::pair<std::string, std::string>{"", "0 bytes"}, {"\xff", "valid UTF-8"},
                                      {std::string(2000, 'x'), "2000 bytes"}}) {
    request.stop = {stop};
    EXPECT_THAT(refusal(*engine, request, ErrorCode::bad_input), HasSubstr(message));
  }
  request = request_of({5}, 4);
  request.sampling.stop_token_ids = {3, 288};
  EXPECT_THAT(refusal(*engine, request, ErrorCode::bad_input), HasSubstr("stop_token_ids has token 288, valid: 0 to 287"));
  EXPECT_EQ(engine->stats().refused, 10u);
  EXPECT_FALSE(engine->has_work());
}

TEST(Engine, BadConfigsAreRefused) {
  const auto message = [](PoolConfig config) {
    const auto engine = Engine::create(shared_gqa(), nullptr, config);
    return engine.ok() ? std::string("accepted") : engine.error().message;
  };
  PoolConfig good = pool_of(8), config = good;
  EXPECT_EQ(message(good), "accepted");
  config.block_tokens = 24;
  EXPECT_THAT(message(config), HasSubstr("block-size is 24, valid: 16, 32"));
  config = good;
  config.threads = 0;
  EXPECT_THAT(message(config), HasSubstr("threads is 0"));
  config = good;
  config.max_sequences = 65;
  EXPECT_THAT(message(config), HasSubstr("max-num-seqs is 65, valid: 1 to 64"));
  config = good;
  config.max_model_len = 1 << 20;
  EXPECT_THAT(message(config), HasSubstr("max-model-len is 1048576, valid: 1 to "));
}

// Known fault B41.
TEST(Engine, APromptBeyondTheContextIsRefusedWithBothSizes) {
  PoolConfig config = pool_of(64);
  config.max_model_len = 64;
  auto engine = make_engine(shared_gqa(), config);
  engine->submit(request_of(random_prompt(20, 1), 30)).value();   // others running change nothing
  engine->submit(request_of(random_prompt(20, 2), 30)).value();
  std::vector<TokenOutput> out;
  engine->step(out);
  for (const std::uint32_t prompt : {64u, 65u, 200u}) {
    EXPECT_THAT(refusal(*engine, request_of(random_prompt(prompt, 3), 10), ErrorCode::bad_input),
                HasSubstr("the prompt has " + std::to_string(prompt) + " tokens and the context (max-model-len) 64"));
  }
  const Answered last = answer(*engine, request_of(random_prompt(63, 3), 10));
  EXPECT_EQ(last.tokens.size(), 1u);   // the context is used up
  EXPECT_EQ(last.finish, FinishReason::length);
  EXPECT_EQ(answer(*engine, request_of(random_prompt(60, 3), 10)).tokens.size(), 4u);
}

// Known fault B19: one rule, exact at the edge. The last token sampled needs no row.
TEST(Engine, AtTheEdgeOfThePool) {
  auto engine = make_engine(shared_gqa(), pool_of(4));
  for (const auto& [prompt, new_tokens] : {std::pair<std::uint32_t, std::uint32_t>{63, 1}, {63, 2}, {64, 1}, {60, 4},
                                           {60, 5}, {1, 63}, {1, 64}}) {
    const Answered a = answer(*engine, request_of(random_prompt(prompt, prompt), new_tokens));
    EXPECT_EQ(a.tokens.size(), new_tokens);
    EXPECT_EQ(a.finish, FinishReason::length);
    engine->check_invariants();
  }
  for (const auto& [prompt, new_tokens] : {std::pair<std::uint32_t, std::uint32_t>{64, 2}, {65, 1}, {60, 6}, {1, 65}}) {
    const std::string message = refusal(*engine, request_of(random_prompt(prompt, 1), new_tokens), ErrorCode::does_not_fit);
    EXPECT_THAT(message, HasSubstr("5"));   // wanted blocks
    EXPECT_THAT(message, HasSubstr("4"));   // blocks there are
  }
}

TEST(Engine, OddCacheSizesAreCutToWholeBlocks) {
  const std::uint64_t token = bytes_of_blocks(*shared_gqa(), {}, 16, 1) / 16;
  for (const auto& [tokens, blocks] : {std::pair{15, 0}, {63, 3}, {64, 4}, {65, 4}}) {
    PoolConfig config = pool_of(1);
    config.kv_cache_bytes = static_cast<std::uint64_t>(tokens) * token;
    const auto engine = Engine::create(shared_gqa(), nullptr, config);
    if (blocks == 0) {
      ASSERT_FALSE(engine.ok());
      EXPECT_EQ(engine.error().code, ErrorCode::does_not_fit);
      continue;
    }
    const CacheAccounting a = engine.value()->accounting();
    EXPECT_EQ(a.total_blocks, static_cast<std::uint64_t>(blocks));
    EXPECT_EQ(a.total_bytes, config.kv_cache_bytes);
    EXPECT_EQ(a.free_bytes + a.slack_bytes, a.total_bytes);
  }
}

// Known faults B22 and B23: what can never fit is refused at once, and those behind it are served.
TEST(Engine, WhatCanNeverFitDoesNotBlockTheQueue) {
  auto engine = make_engine(shared_gqa(), pool_of(6));
  const std::string message = refusal(*engine, request_of(random_prompt(40, 1), 200), ErrorCode::does_not_fit);
  EXPECT_THAT(message, HasSubstr("15"));   // 239 rows
  EXPECT_THAT(message, HasSubstr("6"));
  EXPECT_THAT(refusal(*engine, request_of(random_prompt(130, 1), 1), ErrorCode::does_not_fit), HasSubstr("9"));
  EXPECT_EQ(answer(*engine, request_of(random_prompt(40, 1), 20)).tokens.size(), 20u);
  EXPECT_EQ(answer(*engine, request_of(random_prompt(10, 1), 3)).tokens.size(), 3u);
}

TEST(Engine, WithoutALimitAnAnswerGoesAsFarAsTheCacheReaches) {
  auto engine = make_engine(shared_gqa(), pool_of(4));
  GenerateRequest request = request_of(random_prompt(40, 1), 1);
  request.max_tokens.reset();
  EXPECT_EQ(answer(*engine, request).tokens.size(), 25u);   // 64 rows, and the last token needs none
}

TEST(Engine, RequestsWaitTheirTurnAndAllFinish) {
  auto engine = make_engine(shared_gqa(), pool_of(6));   // room for two of these
  std::set<RequestId> open;
  for (std::uint64_t i = 0; i < 10; ++i) open.insert(engine->submit(request_of(random_prompt(30, i), 10)).value());
  std::vector<TokenOutput> out;
  while (engine->has_work()) {
    engine->step(out);
    engine->check_invariants();
    EXPECT_LE(engine->stats().running, 2u);
    for (const TokenOutput& o : out) {
      if (o.finish != FinishReason::none) open.erase(o.request);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(engine->stats().finished, 10u);
}

TEST(Engine, TheQueueHasAnEnd) {
  PoolConfig config = pool_of(8);
  config.max_queued = 8;
  auto engine = make_engine(shared_gqa(), config);
  for (std::uint64_t i = 0; i < 8; ++i) engine->submit(request_of(random_prompt(5, i), 2)).value();
  refusal(*engine, request_of(random_prompt(5, 9), 2), ErrorCode::exhausted);
  std::vector<TokenOutput> out;
  while (engine->has_work()) engine->step(out);
  EXPECT_TRUE(engine->submit(request_of(random_prompt(5, 9), 2)).ok());
}

// Known fault B13: dropped streams give everything back.
TEST(Engine, DroppedStreamsLeaveNothingBehind) {
  auto fresh = make_engine(shared_gqa(), pool_of(40));
  const std::vector<TokenId> expected = answer(*fresh, request_of(random_prompt(50, 777), 10)).tokens;

  auto engine = make_engine(shared_gqa(), pool_of(40));   // room for ten
  const CacheAccounting start = engine->accounting();
  std::vector<TokenOutput> out;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const RequestId id = engine->submit(request_of(random_prompt(50, i), 10)).value();
    const std::uint64_t steps = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 3;   // queued; prompt under way; decoding
    for (std::uint64_t s = 0; s < steps; ++s) engine->step(out);
    EXPECT_TRUE(engine->cancel(id));
    EXPECT_FALSE(engine->cancel(id));
    ASSERT_EQ(engine->accounting(), start);
  }
  engine->check_invariants();
  EXPECT_FALSE(engine->has_work());
  EXPECT_EQ(engine->stats().cancelled, 300u);
  EXPECT_EQ(answer(*engine, request_of(random_prompt(50, 777), 10)).tokens, expected);
}

TEST(Engine, CancelAtEveryStepLeavesTheOthersAlone) {
  auto solo = make_engine(shared_gqa(), pool_of(64));
  const std::vector<TokenId> expected = answer(*solo, request_of(random_prompt(100, 5), 12)).tokens;
  for (std::uint32_t at = 0; at < 14; ++at) {
    PoolConfig config = pool_of(64);
    config.poison_free = true;   // blocks of the cancelled one turn to NaN
    config.max_batched_tokens = 33;
    auto engine = make_engine(shared_gqa(), config);
    const CacheAccounting start = engine->accounting();
    const RequestId victim = engine->submit(request_of(random_prompt(70, at), 6)).value();
    const RequestId other = engine->submit(request_of(random_prompt(100, 5), 12)).value();
    std::vector<TokenOutput> out;
    std::vector<TokenId> tokens;
    const auto step = [&] {
      engine->step(out);
      for (const TokenOutput& o : out) {
        if (o.request == other) tokens.push_back(o.token);
      }
      engine->check_invariants();
    };
    for (std::uint32_t s = 0; s < at; ++s) step();
    engine->cancel(victim);
    while (engine->has_work()) step();
    EXPECT_EQ(tokens, expected) << "cancelled after step " << at;
    EXPECT_EQ(engine->accounting(), start);
  }
}

// Known fault B10, end to end: what lies in free blocks never shows.
TEST(Engine, PoisonedFreeMemoryNeverShows) {
  std::vector<TokenId> expected;
  for (const bool poison : {false, true}) {
    PoolConfig config = pool_of(12);
    config.poison_free = poison;
    auto engine = make_engine(shared_gqa(), config);
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < 6; ++i) {
      const Answered a = answer(*engine, request_of(random_prompt(15 + 16 * i, i), 9));
      tokens.insert(tokens.end(), a.tokens.begin(), a.tokens.end());
    }
    if (!poison) expected = tokens;
    EXPECT_EQ(tokens, expected);
  }
}

TEST(Engine, LogprobsAreThoseOfTheLogits) {
  auto engine = make_engine(shared_gqa(), pool_of(16));
  std::vector<std::vector<float>> rows;
  std::vector<std::uint32_t> positions;
  engine->set_logits_observer([&](RequestId, std::uint32_t position, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
    positions.push_back(position);
  });
  GenerateRequest request = request_of(random_prompt(70, 3), 8);
  request.sampling = {.temperature = 1.0f, .seed = 4, .logprobs = 3};
  const RequestId id = engine->submit(request).value();
  std::vector<TokenOutput> out;
  std::size_t seen = 0;
  while (engine->has_work()) {
    engine->step(out);
    for (const TokenOutput& o : out) {
      ASSERT_EQ(o.request, id);
      ASSERT_EQ(rows.size(), seen + 1);   // without prompt_logits only rows that are sampled
      EXPECT_EQ(positions[seen] + 1, o.position);
      std::vector<float> blocks(row_blocks(rows[seen].size()));
      const RowMax max = row_max(rows[seen], blocks);
      const double sum = sum_exp(rows[seen], max.value, 1.0f, platform::Isa::scalar);
      EXPECT_TRUE(o.has_logprob);
      EXPECT_EQ(o.logprob, static_cast<float>(log_probability(rows[seen][static_cast<std::size_t>(o.token)], max.value, sum)));
      ASSERT_EQ(o.top_logprobs.size(), 3u);
      EXPECT_EQ(o.top_logprobs[0].token, max.token);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 8u);
  EXPECT_EQ(positions.front(), 69u);
}

TEST(Engine, PromptLogitsCoverEveryPositionOnce) {
  PoolConfig config = pool_of(16);
  config.max_batched_tokens = 33;
  config.logits_rows = 33;
  for (const auto& [from, max_tokens] : {std::pair<std::uint32_t, std::uint32_t>{0, 0}, {0, 3}, {40, 0}, {500, 2}}) {
    auto engine = make_engine(shared_gqa(), config);
    std::vector<std::uint32_t> positions;
    engine->set_logits_observer([&](RequestId, std::uint32_t position, std::span<const float>) { positions.push_back(position); });
    GenerateRequest request = request_of(random_prompt(70, 3), max_tokens);
    request.prompt_logits = true;
    request.prompt_logits_from = from;
    const Answered a = answer(*engine, request);
    EXPECT_EQ(a.finish, FinishReason::length);
    EXPECT_EQ(a.tokens.size(), max_tokens);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t p = std::min(from, max_tokens > 0 ? 69u : 70u); p < 70 + (max_tokens > 0 ? max_tokens - 1 : 0); ++p) expected.push_back(p);
    EXPECT_EQ(positions, expected);
    EXPECT_FALSE(engine->has_work());
    EXPECT_EQ(engine->accounting().active_bytes, 0u);
  }
}

TEST(Engine, MemoryTableAgreesWithWhatWasAllocated) {
  PoolConfig config = pool_of(64);
  config.kv_cache_bytes += 100;   // some slack
  config.max_batched_tokens = 512;
  config.max_queued = 4096;
  auto engine = make_engine(shared_gqa(), config);
  std::set<std::string> names;
  for (const MemoryLine& line : engine->memory()) {
    // 2 %, and the ends of what is given in whole pages: they show because the model is tiny.
    const double pages = line.name == "workspace" ? 6 * 4096.0 : line.name == "weights" ? 22 * 2048.0 : 0.0;   // 22 matrices
    EXPECT_NEAR(static_cast<double>(line.real), static_cast<double>(line.computed),
                0.02 * static_cast<double>(line.computed) + pages) << line.name;
    EXPECT_FALSE(line.how.empty());
    names.insert(line.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"weights", "cache", "workspace", "metadata", "slack"}));
}

TEST(Engine, EffectiveSettingsNameWhatRan) {
  auto engine = make_engine(shared_gqa(), pool_of(16));
  answer(*engine, request_of(random_prompt(10, 1), 3));
  const EffectiveSettings e = engine->effective();
  EXPECT_EQ(e.block_tokens, 16u);
  EXPECT_EQ(e.kv_cache_dtype, "f16");
  EXPECT_EQ(e.steps, 3u);
  EXPECT_EQ(e.max_model_len, shared_gqa()->geometry().context);
  EXPECT_EQ(e.kv_cache_bytes, bytes_of_blocks(*shared_gqa(), {}, 16, 16));
}

}  // namespace
}  // namespace kvasir::engine::test
