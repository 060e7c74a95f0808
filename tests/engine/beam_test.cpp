// Beam searches: the blocks that beams share, copy and let go hold what fresh requests would compute. The oracle is the same
// search over logits of whole sequences, each computed alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "base/prng.hpp"
#include "engine/beam_search.hpp"
#include "engine/engine.hpp"
#include "store/footprint.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using ::testing::HasSubstr;
using kvasir::test::TinyModelSpec;

using Model = std::shared_ptr<const model::Model>;

PoolConfig roomy(const Model& model, std::uint32_t sequences, double times) {
  PoolConfig config;
  config.block_tokens = 16;
  config.max_sequences = sequences;
  config.max_batched_tokens = 32;
  config.max_model_len = 800;
  config.max_queued = 64;
  config.threads = 1;
  config.block_order_seed = 3;
  config.poison_free = true;
  const auto one = store::capacity_for_rows(model->geometry().kv_geometry(config.kv_format, 16), 800, 32).value();
  config.kv_cache_bytes = static_cast<std::uint64_t>(static_cast<double>(one) * times);
  return config;
}

// The logits after a sequence, computed alone and from its first token on.
std::vector<float> logits_after(Engine& engine, const std::vector<TokenId>& tokens) {
  std::vector<float> last;
  engine.set_logits_observer([&](RequestId, std::uint32_t, std::span<const float> row) { last.assign(row.begin(), row.end()); });
  answer(engine, request_of(tokens, 1));
  return last;
}

std::vector<Hypothesis> searched_cold(const Model& model, const std::vector<TokenId>& prompt, const BeamParams& params,
                                      std::uint32_t answer_tokens, std::span<const TokenId> ends) {
  BeamSearch search(params, answer_tokens, ends, model->geometry().vocabulary, platform::Isa::scalar);
  std::vector<std::vector<TokenId>> beams{prompt};
  const auto engine = make_engine(model, roomy(model, 1, 1), false);
  while (!search.over()) {
    for (std::uint32_t b = 0; b < beams.size(); ++b) search.offer(b, logits_after(*engine, beams[b]));
    search.advance();
    if (search.over()) break;
    std::vector<std::vector<TokenId>> next;
    for (const core::BeamStep& step : search.next()) {
      next.push_back(beams[step.from]);
      next.back().push_back(step.token);
    }
    beams = std::move(next);
  }
  return {search.best().begin(), search.best().end()};
}

GenerateRequest beam_request(std::vector<TokenId> prompt, std::uint32_t answer_tokens, const BeamParams& params,
                             std::vector<TokenId> ends) {
  GenerateRequest request = request_of(std::move(prompt), answer_tokens);
  request.beam = params;
  request.sampling.logprobs = 0;
  request.sampling.stop_token_ids = std::move(ends);
  return request;
}

struct Found {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::none;
};

void collect(const std::vector<TokenOutput>& out, RequestId id, std::map<std::uint32_t, Found>& found) {
  for (const TokenOutput& o : out) {
    if (o.request != id) continue;
    found[o.choice].tokens.push_back(o.token);
    found[o.choice].logprobs.push_back(o.logprob);
    found[o.choice].finish = o.finish;
  }
}

void expect_equal(const std::map<std::uint32_t, Found>& found, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::uint32_t choice = 0; choice < expected.size(); ++choice) {
    EXPECT_EQ(found.at(choice).tokens, expected[choice].tokens) << "answer " << choice;
    EXPECT_EQ(found.at(choice).logprobs, expected[choice].logprobs) << "answer " << choice;
    EXPECT_EQ(found.at(choice).finish, expected[choice].ended ? FinishReason::stop : FinishReason::length);
  }
}

// In company, in memory for little more than itself, in every kind of cache group.
TEST(Beams, AreWhatASearchOverFreshSequencesFinds) {
  for (const TinyModelSpec& spec : {TinyModelSpec::gqa(), TinyModelSpec::window_only(), TinyModelSpec::window_and_full(),
                                    TinyModelSpec::mixed_heads()}) {
    const Model model = load_tiny(spec, model::Compute::int8, platform::Isa::scalar);
    for (const std::uint32_t width : {2u, 5u}) {
      for (const EarlyStopping early : {EarlyStopping::off, EarlyStopping::on, EarlyStopping::never}) {
        if (width == 5 && early != EarlyStopping::off) continue;
        const BeamParams params{.width = width, .returned = width, .length_penalty = 0.7f, .early_stopping = early};
        const std::vector<TokenId> prompt = random_prompt(27 + width * 11, width), ends{5, 40, 99};
        const auto engine = make_engine(model, roomy(model, width + 2, 3 + 1.5 * width), false);
        const RequestId neighbour = engine->submit(request_of(random_prompt(50, 9), 30)).value();
        const RequestId id = engine->submit(beam_request(prompt, 18, params, ends)).value();
        std::map<std::uint32_t, Found> found;
        std::vector<TokenOutput> out;
        while (engine->has_work()) {
          engine->step(out);
          engine->check_invariants();
          collect(out, id, found);
        }
        expect_equal(found, searched_cold(model, prompt, params, 18, ends));
        EXPECT_EQ(engine->stats().cache.active_bytes + engine->stats().cache.claimed_bytes, 0u);
        EXPECT_FALSE(engine->cancel(neighbour)) << "it ended too";
      }
    }
  }
}

// Prompt 512, 64 new tokens, 8 beams: the blocks of the prompt are held once.
TEST(Beams, TakeLessThanAThirdOfWhatSeparateSequencesTake) {
  const Model model = shared_gqa();
  const std::vector<TokenId> prompt = random_prompt(512, 1);
  const auto beams = make_engine(model, roomy(model, 8, 8), false), separate = make_engine(model, roomy(model, 8, 8), false);
  answer(*beams, beam_request(prompt, 64, {.width = 8, .returned = 1}, {}));
  std::vector<TokenOutput> out;
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(separate->submit(request_of(random_prompt(512, i), 64)).ok());
  while (separate->has_work()) separate->step(out);
  EXPECT_LE(beams->stats().peak_active_bytes * 3, separate->stats().peak_active_bytes);
}

TEST(Beams, EndAndGiveEverythingBackWheneverTheyAreCancelled) {
  const Model model = load_tiny(TinyModelSpec::window_and_full(), model::Compute::int8, platform::Isa::scalar);
  PhiloxSequence random(2);
  for (int round = 0; round < 12; ++round) {
    const auto engine = make_engine(model, roomy(model, 6, 4), false);
    std::vector<RequestId> ids;
    for (std::uint64_t i = 0; i < 4; ++i)
      ids.push_back(engine->submit(beam_request(random_prompt(20 + 30 * static_cast<std::uint32_t>(i), i), 30, {.width = 3, .returned = 2}, {7})).value());
    std::vector<TokenOutput> out;
    while (engine->has_work()) {
      engine->step(out);
      if (random.below(5) == 0) engine->cancel(ids[random.below(4)]);
      engine->check_invariants();
    }
    const CacheAccounting end = engine->stats().cache;
    EXPECT_EQ(end.active_bytes + end.claimed_bytes, 0u);
  }
}

TEST(Beams, WhatMakesNoSenseIsRefusedByName) {
  const auto engine = make_engine(shared_gqa(), roomy(shared_gqa(), 4, 4), false);
  const auto refusal = [&](const BeamParams& params, auto change) {
    GenerateRequest request = beam_request(random_prompt(5, 1), 4, params, {});
    change(request);
    const auto id = engine->submit(std::move(request));
    return id.ok() ? std::string("accepted") : id.error().message;
  };
  const auto as_it_is = [](GenerateRequest&) {};
  EXPECT_EQ(refusal({.width = 4, .returned = 4}, as_it_is), "accepted");
  EXPECT_EQ(refusal({.width = 1, .returned = 1}, as_it_is), "accepted");
  EXPECT_THAT(refusal({.width = 5}, as_it_is), HasSubstr("beam width is 5"));
  EXPECT_THAT(refusal({.width = 65}, as_it_is), HasSubstr("valid: 1 to 64"));
  EXPECT_THAT(refusal({.width = 2, .returned = 3}, as_it_is), HasSubstr("3 answers"));
  EXPECT_THAT(refusal({.width = 2, .returned = 0}, as_it_is), HasSubstr("0 answers"));
  EXPECT_THAT(refusal({.width = 2, .length_penalty = 1e30f}, as_it_is), HasSubstr("length_penalty"));
  EXPECT_THAT(refusal({.width = 2}, [](GenerateRequest& r) { r.sampling.temperature = 0.5f; }), HasSubstr("temperature 0"));
  EXPECT_THAT(refusal({.width = 2}, [](GenerateRequest& r) { r.sampling.logprobs = 3; }), HasSubstr("no alternatives"));
  EXPECT_THAT(refusal({.width = 2}, [](GenerateRequest& r) { r.prompt_logprobs = 0; }), HasSubstr("no prompt logprobs"));
  EXPECT_THAT(refusal({.width = 2}, [](GenerateRequest& r) { r.sampling.logit_bias = {{3, 1.0f}}; }), HasSubstr("bias"));
}

}  // namespace
}  // namespace kvasir::engine::test
