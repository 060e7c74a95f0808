#include "tests/support/tiny_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "artifact/geometry.hpp"
#include "tests/support/tiny_vocabulary.hpp"

namespace kvasir::test {
namespace {

using artifact::ModelGeometry;
using artifact::TensorType;

std::vector<float> values(const artifact::GgufTensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : tensor.dims) elements *= dim;
  std::vector<float> floats(elements);
  artifact::dequantize(tensor.type, tensor.bytes, floats);
  return floats;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const std::vector<float>& floats) {
  double sum = 0, squares = 0;
  for (const float f : floats) sum += f, squares += double{f} * f;
  const double n = static_cast<double>(floats.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

TEST(TinyModel, PresetsHaveTheGeometryTheyAreNamedFor) {
  for (const auto& [spec, kv_heads] : {std::pair{TinyModelSpec::mha(), 4u}, {TinyModelSpec::gqa(), 2u}, {TinyModelSpec::mqa(), 1u}}) {
    const TinyModel model = make_tiny_model(spec);
    const auto geometry = ModelGeometry::from_gguf(model.file);
    ASSERT_TRUE(geometry.ok()) << geometry.error().message;
    EXPECT_EQ(geometry->heads, 4u);
    EXPECT_EQ(geometry->kv_heads, std::vector<std::uint32_t>(spec.layers, kv_heads));
    EXPECT_EQ(geometry->head_dim, spec.head_dim);
    EXPECT_EQ(geometry->vocabulary, spec.vocabulary);
    EXPECT_EQ(geometry->tied_head, spec.tied_head);
    EXPECT_EQ(model.file.tensors().size(), 2 + 9 * spec.layers + (spec.tied_head ? 0 : 1));
  }
}

TEST(TinyModel, EqualSpecsGiveEqualBytesAndOtherSeedsOthers) {
  TinyModelSpec spec = TinyModelSpec::gqa();
  const auto first = tiny_model_bytes(spec);
  EXPECT_EQ(first, tiny_model_bytes(spec));
  spec.seed = 2;
  EXPECT_NE(first, tiny_model_bytes(spec));
}

TEST(TinyModel, EveryTypeGivesCentredWeightsOfTheDeviationTheirFanInAsksFor) {
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q4_0, TensorType::q4_1,
                                TensorType::q5_0, TensorType::q5_1, TensorType::q8_0, TensorType::q2_k, TensorType::q3_k,
                                TensorType::q4_k, TensorType::q5_k, TensorType::q6_k, TensorType::iq4_nl, TensorType::iq4_xs}) {
    const TinyModel model = make_tiny_model(TinyModelSpec::k_quants(type));
    const auto* tensor = model.file.find_tensor("blk.1.ffn_down.weight");
    ASSERT_NE(tensor, nullptr);
    ASSERT_EQ(tensor->type, type);
    const Moments found = moments(values(*tensor));
    const double wanted = 1 / std::sqrt(256.0);
    EXPECT_NEAR(found.deviation, wanted, 0.15 * wanted) << artifact::to_string(type);
    EXPECT_NEAR(found.mean, 0, 0.15 * wanted) << artifact::to_string(type);  // Q4_0's and Q5_0's quants lean down by half a step
  }
}

TEST(TinyModel, ArchitecturesBringTheirOwnTensors) {
  TinyModelSpec spec = TinyModelSpec::gqa();
  spec.rope_factors = true;
  EXPECT_EQ(ModelGeometry::from_gguf(make_tiny_model(spec).file)->rope.scaling, artifact::RopeScaling::llama3);
  spec.rope_factors = false;
  spec.architecture = "qwen2";
  const TinyModel qwen2 = make_tiny_model(spec);
  ASSERT_NE(qwen2.file.find_tensor("blk.2.attn_k.bias"), nullptr);
  EXPECT_EQ(qwen2.file.find_tensor("blk.2.attn_k.bias")->dims, std::vector<std::uint64_t>{32});
  EXPECT_EQ(ModelGeometry::from_gguf(qwen2.file)->rope.pairing, artifact::RopePairing::halves);
  spec.architecture = "qwen3";
  const TinyModel qwen3 = make_tiny_model(spec);
  ASSERT_NE(qwen3.file.find_tensor("blk.0.attn_q_norm.weight"), nullptr);
  EXPECT_EQ(qwen3.file.find_tensor("blk.0.attn_q_norm.weight")->dims, std::vector<std::uint64_t>{16});
  EXPECT_EQ(qwen3.file.find_tensor("blk.0.attn_q.bias"), nullptr);
}

TEST(TinyVocabulary, TokensAreDistinctAndMergesMakeTokens) {
  for (const std::uint32_t size : {kTinyVocabularyMin, kTinyVocabularyMin + 5, 288u, 1000u}) {
    const TinyVocabulary vocabulary = tiny_vocabulary(size);
    ASSERT_EQ(vocabulary.tokens.size(), size);
    ASSERT_EQ(vocabulary.types.size(), size);
    std::set<std::string> known;
    for (const std::string& token : vocabulary.tokens) EXPECT_TRUE(known.insert(token).second) << token;
    for (const std::string& merge : vocabulary.merges) {
      const std::string left = merge.substr(0, merge.find(' ')), right = merge.substr(merge.find(' ') + 1);
      EXPECT_TRUE(known.count(left) && known.count(right) && known.count(left + right)) << merge;
    }
  }
  EXPECT_EQ(tiny_vocabulary(288).merges.size(), 24u);
}

}  // namespace
}  // namespace kvasir::test
