// What must hold whatever a model's layers keep of their past: each kind of attention x each cache format x each way that
// serving can treat a request. The oracle is the same request alone, whole, in an engine with room: token for token and
// logprob for logprob. Memory that is free is NaN and blocks lie in random order, so a stale or foreign row shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "engine/engine.hpp"
#include "store/footprint.hpp"
#include "tests/engine/tiny_engine.hpp"

namespace kvasir::engine::test {
namespace {

using kvasir::test::TinyModelSpec;

enum class Treatment : std::uint8_t { chunking, batch, fork, cancel, exhaustion };
constexpr std::array kTreatments = {Treatment::chunking, Treatment::batch, Treatment::fork, Treatment::cancel, Treatment::exhaustion};
constexpr std::array kTreatmentNames = {"chunking", "batch", "fork", "cancel", "exhaustion"};
constexpr std::array kFormats = {format::KvType::f32, format::KvType::f16, format::KvType::bf16};
constexpr std::array kModelNames = {"full_gqa", "full_mqa", "window", "window_and_full", "sinks", "mixed_heads"};
constexpr std::uint32_t kLongestPrompt = 110, kAnswer = 45, kBlockTokens = 16;

std::shared_ptr<const model::Model> model_of(std::size_t at) {
  static std::map<std::size_t, std::shared_ptr<const model::Model>> loaded;
  std::shared_ptr<const model::Model>& model = loaded[at];
  if (model == nullptr) {
    const std::array specs = {TinyModelSpec::gqa(), TinyModelSpec::mqa(), TinyModelSpec::window_only(),
                              TinyModelSpec::window_and_full(), TinyModelSpec::sinks(), TinyModelSpec::mixed_heads()};
    model = load_tiny(specs[at], model::Compute::int8, platform::Isa::scalar);
  }
  return model;
}

struct Cell {
  std::size_t model = 0;
  format::KvType kv = format::KvType::f16;
  Treatment treatment = Treatment::batch;
};

std::string name_of(const ::testing::TestParamInfo<Cell>& info) {
  return fmt::format("{}_{}_{}", kModelNames[info.param.model], format::to_string(info.param.kv),
                     kTreatmentNames[static_cast<std::size_t>(info.param.treatment)]);
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (std::size_t m = 0; m < kModelNames.size(); ++m)
    for (const format::KvType kv : kFormats)
      for (const Treatment t : kTreatments) all.push_back({m, kv, t});
  return all;
}

class GroupPromises : public ::testing::TestWithParam<Cell> {
 protected:
  // sequences: whole ones that the cache has room for, each as long as they get.
  std::unique_ptr<Engine> engine(double sequences, std::uint32_t step_rows, std::uint32_t max_sequences) {
    const auto model = model_of(GetParam().model);
    PoolConfig config;
    config.block_tokens = kBlockTokens;
    config.kv_format = {GetParam().kv, GetParam().kv};
    config.max_batched_tokens = step_rows;
    config.max_sequences = max_sequences;
    config.max_model_len = kLongestPrompt + kAnswer;
    config.max_queued = 64;
    config.threads = 2;
    config.block_order_seed = 5;
    config.poison_free = true;
    const auto one = store::capacity_for_rows(model->geometry().kv_geometry(config.kv_format, kBlockTokens),
                                              config.max_model_len, step_rows);
    config.kv_cache_bytes = static_cast<std::uint64_t>(static_cast<double>(one.value()) * sequences);
    return make_engine(model, config, false);
  }

  // Prompts of all lengths around the windows' edges and the blocks'; one prompt for all where they are a family.
  GenerateRequest request(std::uint32_t at) const {
    const bool family = GetParam().treatment == Treatment::fork;
    const std::uint32_t prompt = family ? 70 : 1 + (at * 37 + 16) % kLongestPrompt;
    GenerateRequest r = request_of(random_prompt(prompt, family ? 1 : at), kAnswer - at % 7);
    r.sampling = {.temperature = 1.0f, .seed = 3, .choice = at, .logprobs = 0};
    r.family = family ? 9 : 0;
    return r;
  }

  // Runs requests 0 .. n-1 together and compares those that were not cancelled with themselves alone.
  void expect_as_alone(Engine& engine, std::uint32_t n, bool cancel) {
    std::vector<RequestId> ids;
    std::map<RequestId, Answered> answers;
    for (std::uint32_t i = 0; i < n; ++i) ids.push_back(engine.submit(request(i)).value());
    PhiloxSequence random(7);
    std::vector<TokenOutput> out;
    while (engine.has_work()) {
      engine.step(out);
      for (const TokenOutput& o : out) {
        Answered& answer = answers[o.request];
        if (o.token >= 0) answer.tokens.push_back(o.token);
        if (o.has_logprob) answer.logprobs.push_back(o.logprob);
        answer.finish = o.finish;
      }
      if (cancel && random.below(4) == 0) engine.cancel(ids[random.below(n / 2) * 2]);   // every second one may go
      engine.check_invariants();
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      if (cancel && i % 2 == 0) continue;
      const auto alone = this->engine(2, 512, 4);
      GenerateRequest same = request(i);
      same.family = 0;
      const Answered expected = answer(*alone, std::move(same));
      ASSERT_EQ(answers[ids[i]].finish, FinishReason::length);
      ASSERT_EQ(answers[ids[i]].tokens, expected.tokens) << "request " << i;
      ASSERT_EQ(answers[ids[i]].logprobs, expected.logprobs) << "request " << i;
    }
    const CacheAccounting end = engine.stats().cache;
    EXPECT_EQ(end.active_bytes + end.claimed_bytes, 0u) << "everything came back";
  }
};

TEST_P(GroupPromises, Hold) {
  switch (GetParam().treatment) {
    case Treatment::chunking: {
      const auto engine = this->engine(2, 7, 2);
      return expect_as_alone(*engine, 3, false);
    }
    case Treatment::batch: {
      const auto engine = this->engine(9, 64, 8);
      return expect_as_alone(*engine, 6, false);
    }
    case Treatment::fork: {
      const auto engine = this->engine(5, 32, 4);
      expect_as_alone(*engine, 4, false);
      EXPECT_GE(engine->stats().shared_prompt_tokens, 69u * 2) << "the prompt was not computed four times";
      return;
    }
    case Treatment::cancel: {
      const auto engine = this->engine(4, 24, 8);
      return expect_as_alone(*engine, 8, true);
    }
    case Treatment::exhaustion: {
      const auto engine = this->engine(1.3, 24, 8);
      return expect_as_alone(*engine, 6, false);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, GroupPromises, ::testing::ValuesIn(cells()), name_of);

}  // namespace
}  // namespace kvasir::engine::test
