#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/footprint.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::model {
namespace {

using ::testing::HasSubstr;
using test::TinyModelSpec;

Result<std::shared_ptr<const Model>> load(const TinyModelSpec& spec) {
  return Model::load(test::make_tiny_model(spec).file, {.threads = 1});
}

std::string refusal(const TinyModelSpec& spec, ErrorCode code) {
  const auto model = load(spec);
  if (model.ok()) return "loaded";
  EXPECT_EQ(model.error().code, code);
  return model.error().message;
}

std::uint64_t packed(const Linear& part) { return kernels::packed_bytes(part.matrix.form, part.matrix.n, part.matrix.k); }
std::uint64_t bytes_of(const Linear& part) { return packed(part) + part.bias.size() * sizeof(float); }
std::uint64_t bytes_of(const Projection& projection) {
  std::uint64_t sum = 0;
  for (const Linear& part : projection.parts) sum += bytes_of(part);
  return sum;
}
std::uint64_t bytes_of(const std::vector<float>& norm) { return norm.size() * sizeof(float); }

// What the loaded weights really hold, part by part.
WeightFootprint held(const Weights& w) {
  WeightFootprint sum;
  sum.embedding = bytes_of(w.embedding);
  sum.head = w.head.parts.front().matrix.tiles == w.embedding.matrix.tiles ? 0 : bytes_of(w.head);
  sum.matrices = w.memory.bytes();
  sum.norms = bytes_of(w.output_norm);
  for (const RopeTable& rope : w.ropes) sum.norms += rope.frequencies.size() * sizeof(double);
  for (const Layer& layer : w.layers) {
    sum.attention += bytes_of(layer.qkv) + bytes_of(layer.attention_out) + bytes_of(layer.sinks);
    sum.feed_forward += bytes_of(layer.gate_up) + bytes_of(layer.down);
    sum.norms += bytes_of(layer.attention_norm) + bytes_of(layer.feed_forward_norm) + bytes_of(layer.q_norm) + bytes_of(layer.k_norm) +
                 bytes_of(layer.post_attention_norm) + bytes_of(layer.post_feed_forward_norm);
  }
  return sum;
}

TEST(Load, TakesWhatTheFootprintSays) {
  std::vector<TinyModelSpec> specs = {TinyModelSpec::mha(), TinyModelSpec::gqa(), TinyModelSpec::mqa(),
                                      TinyModelSpec::window_and_full(), TinyModelSpec::window_only(), TinyModelSpec::sinks(),
                                      TinyModelSpec::mixed_heads()};
  for (const char* architecture : {"qwen2", "qwen3"}) {
    specs.push_back(TinyModelSpec::gqa());
    specs.back().architecture = architecture;
  }
  using artifact::TensorType;
  for (const auto type : {TensorType::q2_k, TensorType::q3_k, TensorType::q4_k, TensorType::q5_k, TensorType::q6_k,
                          TensorType::iq4_nl, TensorType::iq4_xs})
    specs.push_back(TinyModelSpec::k_quants(type));
  specs.push_back(TinyModelSpec::mha());
  specs.back().rope_factors = true;
  for (const TinyModelSpec& spec : specs) {
    const auto model = load(spec);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const WeightFootprint computed = (*model)->footprint(), real = held((*model)->weights());
    EXPECT_EQ(computed.embedding, real.embedding);
    EXPECT_EQ(computed.head, real.head);
    EXPECT_EQ(computed.attention, real.attention);
    EXPECT_EQ(computed.feed_forward, real.feed_forward);
    EXPECT_EQ(computed.norms, real.norms);
    EXPECT_EQ(computed.matrices, real.matrices);
  }
}

TEST(Load, MissingTensorIsNamedWithItsShape) {
  TinyModelSpec spec = TinyModelSpec::gqa();
  spec.without = "blk.1.ffn_up.weight";
  EXPECT_THAT(refusal(spec, ErrorCode::bad_input), HasSubstr("tensor 'blk.1.ffn_up.weight' is missing; architecture llama needs it with shape [64, 96]"));
}

// A bias that the description table does not know would be left out of every answer.
TEST(Load, TensorThatNoStepReadsIsRefused) {
  TinyModelSpec spec = TinyModelSpec::gqa();
  spec.extra = "blk.0.attn_q.bias";
  EXPECT_THAT(refusal(spec, ErrorCode::unsupported), HasSubstr("tensor 'blk.0.attn_q.bias' has no place in the forward pass of llama"));
}

std::string refusal_of(TinyModelSpec spec, std::string architecture, std::uint32_t window) {
  spec.architecture = std::move(architecture);
  spec.window = window;
  return refusal(spec, ErrorCode::unsupported);
}

TEST(Load, AWindowOfUnknownLayersIsRefused) {
  EXPECT_THAT(refusal_of(TinyModelSpec::gqa(), "qwen3", 64),
              HasSubstr("a sliding window of 64 tokens in a model of architecture qwen3: which of its layers have it is not known"));
  TinyModelSpec told = TinyModelSpec::gqa();
  told.architecture = "qwen3";
  told.window = 64;
  told.window_period = 3;
  EXPECT_TRUE(load(told).ok()) << "the file says which";
  told.window_period = 0;
  told.window = told.context;
  EXPECT_TRUE(load(told).ok()) << "as long as the context";
}

TEST(Load, WhatTheFileSaysOfLayersIsWhatTheGeometryHas) {
  const auto model = load(TinyModelSpec::window_and_full());
  ASSERT_TRUE(model.ok()) << model.error().message;
  const artifact::ModelGeometry& g = (*model)->geometry();
  const format::KvGeometry kv = g.kv_geometry({}, 16);
  ASSERT_EQ(kv.groups.size(), 2u);
  EXPECT_EQ(kv.groups[0].layers, (std::vector<std::uint32_t>{0, 1, 3}));
  EXPECT_EQ(kv.groups[0].window, 40u);
  EXPECT_EQ(kv.groups[1].layers, (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(kv.groups[1].window, 0u);
  EXPECT_EQ((*model)->weights().ropes.size(), 2u) << "Gemma's window layers turn by another base";
  EXPECT_EQ(g.window_rope.base, 10'000);
}

}  // namespace
}  // namespace kvasir::model
