// An answer that outgrows its context: known faults of keys that are turned twice cannot happen, because nothing is turned
// again. What is kept is computed anew, and the oracle is a fresh request for what was kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using ::testing::HasSubstr;
using kvasir::test::TinyModelSpec;

constexpr std::uint32_t kContext = 64;

PoolConfig shifting(std::optional<std::uint32_t> keep, format::KvType kv = format::KvType::f16) {
  PoolConfig config = pool_of(40, 16);
  config.max_model_len = kContext;
  config.max_batched_tokens = 24;
  config.kv_format = {kv, kv};
  config.poison_free = true;
  config.context_keep = keep;
  return config;
}

// What the answer must be: at each full context a new request with the kept tokens as its prompt.
std::vector<TokenId> by_hand(const std::shared_ptr<const model::Model>& model, format::KvType kv, std::vector<TokenId> known,
                             std::uint32_t answer_tokens, std::uint32_t keep) {
  std::vector<TokenId> out;
  while (out.size() < answer_tokens) {
    const auto more = std::min<std::uint32_t>(answer_tokens - static_cast<std::uint32_t>(out.size()),
                                              kContext + 1 - static_cast<std::uint32_t>(known.size()));
    PoolConfig config = shifting(std::nullopt, kv);
    config.max_model_len = kContext + 1;   // the token that is one too many ends it there
    const auto engine = make_engine(model, config, false);
    const Answered piece = answer(*engine, request_of(known, more));
    out.insert(out.end(), piece.tokens.begin(), piece.tokens.end());
    known.insert(known.end(), piece.tokens.begin(), piece.tokens.end());
    if (known.size() <= kContext) continue;
    const auto gone = (static_cast<std::uint32_t>(known.size()) - keep) / 2;
    known.erase(known.begin() + keep, known.begin() + keep + gone);
  }
  return out;
}

// Known fault B07: a context of 64 and an answer of three times that, in every kind of cache.
TEST(ContextShift, GoesOnAsAFreshRequestForWhatItKept) {
  for (const TinyModelSpec& spec : {TinyModelSpec::gqa(), TinyModelSpec::window_and_full(), TinyModelSpec::sinks()}) {
    const auto model = load_tiny(spec, model::Compute::int8, platform::Isa::scalar);
    for (const format::KvType kv : {format::KvType::f32, format::KvType::bf16}) {
      for (const std::uint32_t keep : {0u, 5u, 40u}) {
        const std::vector<TokenId> prompt = random_prompt(20, 4);
        const auto engine = make_engine(model, shifting(keep, kv), false);
        const Answered long_one = answer(*engine, request_of(prompt, 190));
        ASSERT_EQ(long_one.tokens.size(), 190u);
        EXPECT_EQ(long_one.tokens, by_hand(model, kv, prompt, 190, keep)) << spec.architecture << " keep " << keep;
        EXPECT_GE(engine->stats().context_shifts, 3u);
        engine->check_invariants();
        EXPECT_EQ(engine->stats().cache.active_bytes, 0u);
      }
    }
  }
}

// Others come, go and wait for blocks meanwhile; each answer is what it is alone.
TEST(ContextShift, AmongOthersInLittleMemory) {
  PoolConfig config = shifting(4);
  config.kv_cache_bytes = bytes_of_blocks(*shared_gqa(), config.kv_format, 16, 9);
  const auto engine = make_engine(shared_gqa(), config, false);
  std::vector<RequestId> ids;
  std::map<RequestId, std::vector<TokenId>> answers;
  for (std::uint64_t i = 0; i < 5; ++i) ids.push_back(engine->submit(request_of(random_prompt(10 + 9 * static_cast<std::uint32_t>(i), i), 150)).value());
  std::vector<TokenOutput> out;
  while (engine->has_work()) {
    engine->step(out);
    engine->check_invariants();
    for (const TokenOutput& o : out) answers[o.request].push_back(o.token);
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto alone = make_engine(shared_gqa(), shifting(4), false);
    EXPECT_EQ(answers[ids[i]], answer(*alone, request_of(random_prompt(10 + 9 * static_cast<std::uint32_t>(i), i), 150)).tokens);
  }
}

TEST(ContextShift, WithoutItTheAnswerEndsWithTheContext) {
  const auto engine = make_engine(shared_gqa(), shifting(std::nullopt), false);
  const Answered cut = answer(*engine, request_of(random_prompt(20, 4), 190));
  EXPECT_EQ(cut.tokens.size(), kContext - 20);
  EXPECT_EQ(cut.finish, FinishReason::length);
}

// Known fault B49: values that make no sense are refused when the engine is made, not met in mid-stream.
TEST(ContextShift, WhatCannotBeKeptIsRefused) {
  for (const std::uint32_t keep : {kContext - 1, kContext, 1'000'000'000u, ~0u}) {
    const auto made = Engine::create(shared_gqa(), nullptr, shifting(keep));
    ASSERT_FALSE(made.ok()) << keep;
    EXPECT_THAT(made.error().message, HasSubstr("valid: 0 to 62"));
  }
  EXPECT_TRUE(Engine::create(shared_gqa(), nullptr, shifting(kContext - 2)).ok());
}

}  // namespace
}  // namespace kvasir::engine::test
