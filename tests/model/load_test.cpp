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
  sum.norms = bytes_of(w.output_norm) + w.rope_frequencies.size() * sizeof(double);
  for (const Layer& layer : w.layers) {
    sum.attention += bytes_of(layer.qkv) + bytes_of(layer.attention_out);
    sum.feed_forward += bytes_of(layer.gate_up) + bytes_of(layer.down);
    sum.norms += bytes_of(layer.attention_norm) + bytes_of(layer.feed_forward_norm) + bytes_of(layer.q_norm) + bytes_of(layer.k_norm);
  }
  return sum;
}

TEST(Load, TakesWhatTheFootprintSays) {
  std::vector<TinyModelSpec> specs = {TinyModelSpec::mha(), TinyModelSpec::gqa(), TinyModelSpec::mqa()};
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

}  // namespace
}  // namespace kvasir::model
