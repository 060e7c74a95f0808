// Angles against those of transformers' rope functions, computed in float64.
#include "model/rope_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace kvasir::model {
namespace {

using artifact::LayerRope;
using artifact::Rope;
using artifact::RopePairing;
using artifact::RopeScaling;

struct Published {
  const char* name;
  Rope rope;
  double scale;
  std::vector<std::pair<std::uint32_t, double>> frequencies;   // of some pairs
};

// Qwen 2.5 stretched four times, GPT-OSS (its ramp's ends not rounded to pairs), and a plain linear one.
const std::vector<Published> kPublished = {
    {"qwen", {.dim = 128, .base = 1e6, .scaling = RopeScaling::yarn, .factor = 4, .original_context = 32768}, 1.138629436111989,
     {{0, 1.0}, {1, 0.8058421877614819}, {16, 0.03162277660168379}, {32, 0.0006029411764705882}, {37, 0.00012993149493015669}, {63, 3.102344401879299e-07}}},
    {"gpt-oss", {.dim = 64, .base = 150000, .scaling = RopeScaling::yarn, .factor = 32, .original_context = 4096, .whole_pairs = false}, 1.3465735902799727,
     {{0, 1.0}, {1, 0.6890443058881633}, {8, 0.050813274815461475}, {16, 0.00045648391922324086}, {21, 1.2532569824095001e-05}, {31, 3.0235114281192144e-07}}},
    {"linear", {.dim = 64, .scaling = RopeScaling::linear, .factor = 8}, 1,
     {{0, 0.125}, {1, 0.09373677616655698}, {8, 0.0125}, {16, 0.00125}, {21, 0.00029642171320770687}, {31, 1.666901790204155e-05}}}};

TEST(RopeTable, IsThatOfTransformers) {
  for (const Published& one : kPublished) {
    const auto table = make_rope_table(one.rope, {}, "");
    ASSERT_TRUE(table.ok());
    EXPECT_NEAR(table->scale, one.scale, 1e-14) << one.name;
    for (const auto& [pair, frequency] : one.frequencies)
      EXPECT_NEAR(table->frequencies[pair] / frequency, 1, 1e-12) << one.name << ", pair " << pair;
  }
}

TEST(RopeTable, AnAttentionFactorOfTheFileReplacesYarns) {
  Rope rope = kPublished[0].rope;
  rope.attention_factor = 1.5;
  EXPECT_EQ(make_rope_table(rope, {}, "")->scale, 1.5);
}

TEST(RopeTable, FactorsDivideAndWrongOnesAreRefusedByPlace) {
  const Rope rope{.dim = 8, .scaling = RopeScaling::llama3};
  const std::vector<float> factors = {1, 2, 4, 8};
  const auto plain = make_rope_table({.dim = 8}, {}, ""), divided = make_rope_table(rope, factors, "f");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(divided->frequencies[i], plain->frequencies[i] / static_cast<double>(factors[i]));
  const std::vector<float> wrong = {1, 0, 4, 8};
  EXPECT_EQ(make_rope_table(rope, wrong, "tiny.gguf: rope_freqs.weight").error().message,
            "tiny.gguf: rope_freqs.weight[1] is 0; a factor is positive and below 1e6");
}

TEST(RopeTable, EachRopeThatLayersUseOnce) {
  artifact::ModelGeometry g;
  g.rope = {.pairing = RopePairing::halves, .dim = 16, .base = 1e6};
  g.window_rope = {.pairing = RopePairing::halves, .dim = 16};
  g.layer_rope = {LayerRope::window, LayerRope::none, LayerRope::full};
  EXPECT_THAT(ropes_of(g), testing::ElementsAre(g.rope, g.window_rope));
  EXPECT_EQ(rope_index(g, 0), 1u);
  EXPECT_EQ(rope_index(g, 1), std::nullopt);
  EXPECT_EQ(rope_index(g, 2), 0u);
  g.layer_rope = {LayerRope::window, LayerRope::window};
  EXPECT_THAT(ropes_of(g), testing::ElementsAre(g.window_rope));
  EXPECT_EQ(rope_index(g, 0), 0u);
  g.window_rope = g.rope;
  EXPECT_THAT(ropes_of(g), testing::ElementsAre(g.rope));
  g.layer_rope = {LayerRope::none};
  EXPECT_THAT(ropes_of(g), testing::IsEmpty());
}

}  // namespace
}  // namespace kvasir::model
