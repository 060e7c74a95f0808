// The forward pass over several cache groups: windows, unlike KV heads, sinks, two ropes. However a sequence is cut into steps,
// whatever else is in them, its logits are the same bits; and what a window has left behind is not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/architecture.hpp"
#include "tests/model/step_runner.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::model::test {
namespace {

using kvasir::test::TinyModelSpec;
using Logits = std::vector<std::vector<float>>;

constexpr std::uint32_t kTokens = 300;   // crosses position 256, and every window several times

std::shared_ptr<const Model> load(const TinyModelSpec& spec, Compute compute = Compute::int8, platform::Isa isa = platform::Isa::scalar) {
  return Model::load(kvasir::test::make_tiny_model(spec).file, {.compute = compute, .isa = isa, .threads = 1}).value();
}

std::vector<TokenId> text(std::uint32_t tokens, std::uint64_t seed) {
  PhiloxSequence random(seed, 0x7e);
  std::vector<TokenId> out(tokens);
  for (TokenId& token : out) token = static_cast<TokenId>(random.below(256));
  return out;
}

struct Cut {
  std::uint32_t rows = kTokens;        // of a step
  std::uint32_t block_tokens = 16;
  std::size_t threads = 1;
  std::uint64_t seed = 1;
};

Logits run(const std::shared_ptr<const Model>& model, const std::vector<TokenId>& tokens, const Cut& cut) {
  platform::ThreadPool pool(cut.threads);
  StepRunner runner(model, {.rows = cut.rows, .context = kTokens, .block_tokens = cut.block_tokens, .seed = cut.seed}, pool);
  Logits all;
  for (std::uint32_t at = 0; at < tokens.size(); at += cut.rows) {
    const auto count = std::min<std::uint32_t>(cut.rows, static_cast<std::uint32_t>(tokens.size()) - at);
    for (auto& row : runner.step({tokens}, {{0, at, count}})) all.push_back(std::move(row));
  }
  return all;
}

class EverySpec : public testing::TestWithParam<int> {
 protected:
  static TinyModelSpec spec() {
    return std::vector{TinyModelSpec::window_and_full(), TinyModelSpec::window_only(), TinyModelSpec::sinks(),
                       TinyModelSpec::mixed_heads()}[static_cast<std::size_t>(GetParam())];
  }
};
INSTANTIATE_TEST_SUITE_P(Specs, EverySpec, testing::Range(0, 4));

TEST_P(EverySpec, HowStepsAreCutDoesNotShow) {
  const auto model = load(spec());
  const auto tokens = text(kTokens, 5);
  const Logits whole = run(model, tokens, {});
  for (const auto& row : whole) ASSERT_TRUE(std::ranges::all_of(row, [](float x) { return std::isfinite(x); }));
  for (const Cut& cut : {Cut{.rows = 1, .threads = 3}, Cut{.rows = 7, .block_tokens = 32, .seed = 9}, Cut{.rows = 100, .block_tokens = 64, .threads = 2}})
    EXPECT_EQ(run(model, tokens, cut), whole) << cut.rows << " rows a step";
}

TEST_P(EverySpec, OtherSequencesOfTheStepDoNotShow) {
  const auto model = load(spec());
  const std::vector<std::vector<TokenId>> tokens = {text(kTokens, 5), text(170, 6), text(kTokens, 7)};
  const Logits solo = run(model, tokens[0], {});
  platform::ThreadPool pool(2);
  StepRunner runner(model, {.sequences = 3, .rows = 96, .context = kTokens, .seed = 4}, pool);
  Logits batched;
  std::vector<std::uint32_t> done(3);
  const std::uint32_t rows[] = {11, 50, 23};
  while (done[0] < kTokens) {
    std::vector<StepRunner::Part> parts;
    for (const std::uint32_t s : {2u, 0u, 1u}) {
      const auto count = std::min(rows[s], static_cast<std::uint32_t>(tokens[s].size()) - done[s]);
      if (count != 0) parts.push_back({s, done[s], count});
    }
    const Logits step = runner.step(tokens, parts);
    std::size_t at = 0;
    for (const StepRunner::Part& part : parts) {
      if (part.sequence == 0) batched.insert(batched.end(), step.begin() + static_cast<std::ptrdiff_t>(at), step.begin() + static_cast<std::ptrdiff_t>(at + part.count));
      at += part.count;
      done[part.sequence] += part.count;
    }
  }
  EXPECT_EQ(batched, solo);
}

TEST_P(EverySpec, TheInstructionClassDoesNotShow) {
  const auto tokens = text(80, 5);
  for (const Compute compute : {Compute::int8, Compute::f32}) {
    const Logits scalar = run(load(spec(), compute), tokens, {});
    for (const platform::Isa isa : platform::available_isas()) EXPECT_EQ(run(load(spec(), compute, isa), tokens, {}), scalar);
  }
}

// Blocks that are left behind go back: a window group never holds more than its window and the step's own rows.
TEST(Forward, WindowGroupsHoldTheirWindow) {
  const auto model = load(TinyModelSpec::window_and_full());
  platform::ThreadPool pool(1);
  StepRunner runner(model, {.rows = 1, .context = kTokens}, pool);
  const auto tokens = text(kTokens, 5);
  for (std::uint32_t at = 0; at < kTokens; ++at) {
    runner.step({tokens}, {{0, at, 1}});
    const std::vector<std::size_t> used = runner.used();
    ASSERT_EQ(used.size(), 2u);
    EXPECT_LE(used[0], (40u - 1 + 15) / 16 + 1) << "the first layer has a window of 40";
    EXPECT_EQ(used[1], at / 16 + 1);
  }
}

// What is more than a window ago has no say in a model of one layer with a window: each layer looks back one window more.
TEST(Forward, AWindowForgets) {
  TinyModelSpec spec = TinyModelSpec::window_only();
  spec.layers = 1;
  const auto model = load(spec);
  auto tokens = text(100, 5);
  const Logits one = run(model, tokens, {});
  tokens[99 - 24] = (tokens[99 - 24] + 1) % 256;
  const Logits beyond = run(model, tokens, {});
  EXPECT_EQ(beyond[99], one[99]);
  EXPECT_NE(beyond[98], one[98]) << "the last position that sees it";
  tokens[99 - 23] = (tokens[99 - 23] + 1) % 256;
  EXPECT_NE(run(model, tokens, {})[99], one[99]);
}

// A window as long as the context is full history, to the bit: the same group, the same spans.
TEST(Forward, AWindowAsLongAsTheContextIsNone) {
  TinyModelSpec spec = TinyModelSpec::window_only(), plain = spec;
  spec.window = spec.context;
  plain.window = 0;
  const auto tokens = text(40, 5);
  EXPECT_EQ(run(load(spec), tokens, {}), run(load(plain), tokens, {}));
}

}  // namespace
}  // namespace kvasir::model::test
