#include "artifact/known_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "artifact/parameter_count.hpp"

namespace kvasir::artifact {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModelShape known(std::string_view name) {
  auto shape = known_model(name);
  EXPECT_TRUE(shape.ok()) << name << ": " << (shape.ok() ? "" : shape.error().message);
  return shape.ok() ? *shape : ModelShape{};
}

// Elements a token, counted naively: of layers without a window, and of layers with one. Index rows apart.
struct Elements {
  std::uint64_t growing = 0, bounded = 0, layers_growing = 0, layers_bounded = 0;
};

Elements elements(const ModelShape& shape) {
  Elements sum;
  for (const LayerShape& layer : shape.layers) {
    if (layer.memory != Memory::attention && layer.memory != Memory::latent) continue;
    (layer.window == 0 ? sum.growing : sum.bounded) += std::uint64_t{layer.kv_heads} * (layer.k_dim + layer.v_dim);
    (layer.window == 0 ? sum.layers_growing : sum.layers_bounded) += 1;
  }
  return sum;
}

TEST(KnownModels, AllAreShapesThatHold) {
  EXPECT_EQ(known_model_names().size(), 77u);
  for (const std::string_view name : known_model_names()) {
    const ModelShape shape = known(name);
    EXPECT_EQ(shape.name, name);
    const Status status = check_shape(shape, name);
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(counted_parameters(shape), 0u) << "no widths of feed-forward blocks in the table";
  }
}

TEST(KnownModels, KeepAsManyElementsATokenAsPapersSay) {
  EXPECT_EQ(elements(known("Llama-3-8B")).growing * 2, 128u << 10) << "vAttention paper";
  EXPECT_EQ(elements(known("OPT-13B")).growing * 2, 800u << 10) << "PagedAttention paper";
  EXPECT_EQ(elements(known("DeepSeek-V2")).growing, 34'560u) << "DeepSeek-V2 report, table 9";
  EXPECT_EQ(elements(known("DeepSeek-V2-Lite")).growing, 15'552u) << "DeepSeek-V2 report, table 9";
  EXPECT_EQ(elements(known("DeepSeek-V3")).growing * 2, 70'272u) << "61 layers, not V2's 60";
  EXPECT_EQ(elements(known("Falcon-7B")).growing, 32u * 128) << "one KV head, not 71";
  EXPECT_EQ(elements(known("Command-R v01")).growing * 2, 1280u << 10) << "64 KV heads";
}

// Every row against the list it was made from.
TEST(KnownModels, AgreeWithTheListOfFacts) {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/data/geometry/models.json");
  const nlohmann::json facts = nlohmann::json::parse(file);
  ASSERT_EQ(facts["models"].size(), known_model_names().size());
  for (const nlohmann::json& model : facts["models"]) {
    SCOPED_TRACE(model["name"].get<std::string>());
    const ModelShape shape = known(model["name"].get<std::string>());
    EXPECT_EQ(shape.layers.size(), model["layers"]);
    EXPECT_EQ(shape.width, model["hidden_size"]);
    EXPECT_EQ(shape.heads, model["q_heads"]);
    EXPECT_EQ(shape.vocabulary, model["vocab_size"]);
    EXPECT_EQ(shape.context, model["max_context"]);
    EXPECT_EQ(shape.tied_head, model.value("tied_embeddings", false));
    if (model["params_b"].is_number()) {
      EXPECT_NEAR(static_cast<double>(shape.parameters) / 1e9, model["params_b"].get<double>(), 0.016 * model["params_b"].get<double>());
    }
    const nlohmann::json& kv = model["kv"];
    if (kv.is_null()) continue;
    const Elements sum = elements(shape);
    EXPECT_EQ(sum.growing, kv["elements_per_token_growing"]);
    EXPECT_EQ(sum.layers_growing, kv["layers_growing"]);
    EXPECT_EQ(sum.bounded, kv.value("elements_per_token_bounded", 0));
    EXPECT_EQ(sum.layers_bounded, kv.value("layers_bounded", 0));
    for (const LayerShape& layer : shape.layers) {
      if (layer.window != 0) {
        EXPECT_EQ(layer.window, kv["window"]);
      }
    }
  }
}

TEST(KnownModels, MergedRowsStandForTheirRatio) {
  const ModelShape v4 = known("DeepSeek-V4-Flash");
  EXPECT_EQ(v4.layers[0], (LayerShape{.memory = Memory::latent, .kv_heads = 1, .k_dim = 512, .window = 128}));
  EXPECT_EQ(v4.layers[2], (LayerShape{.memory = Memory::latent, .kv_heads = 1, .k_dim = 512, .index_dim = 128, .merged = 4, .recent = 128}));
  EXPECT_EQ(v4.layers[3], (LayerShape{.memory = Memory::latent, .kv_heads = 1, .k_dim = 512, .merged = 128, .recent = 128}));
  EXPECT_EQ(v4.layers[42].merged, 4u);
}

TEST(KnownModels, IndexesStatesAndChunks) {
  EXPECT_EQ(known("DeepSeek-V3.2").layers[60].index_dim, 128u);
  EXPECT_EQ(known("GLM-5").layers[0].index_dim, 128u);
  EXPECT_EQ(known("DeepSeek-V3").layers[0].index_dim, 0u);
  EXPECT_TRUE(known("Llama-4-Scout-17B-16E").layers[0].chunked);
  EXPECT_FALSE(known("Llama-4-Scout-17B-16E").layers[3].chunked);
  EXPECT_EQ(known("Kimi-K3").layers[91].memory, Memory::latent);
  EXPECT_EQ(known("Kimi-K3").layers[92].memory, Memory::latent);
  const LayerShape delta = known("Qwen3-Next-80B-A3B").layers[0];
  EXPECT_EQ(delta.state_elements, 32u * 128 * 128 + (2 * 16 * 128 + 32 * 128) * 3);
  EXPECT_EQ(delta.state_bytes, 4u);
  const LayerShape mamba = known("Nemotron-3-Nano-30B-A3B").layers[0];
  EXPECT_EQ(mamba.state_elements, 64u * 64 * 128 + (64 * 64 + 2 * 8 * 128) * 3);
  EXPECT_EQ(mamba.state_bytes, 4u) << "its config says so";
  EXPECT_EQ(known("Jamba-v0.1").layers[0].state_elements, 8192u * 16 + 8192 * 3);
}

TEST(KnownModels, NamesWithoutCaseAndPunctuation) {
  for (const auto& [asked, found] : std::map<std::string, std::string>{
           {"Llama-3-8B", "Llama-3-8B"}, {"llama-3-8b", "Llama-3-8B"}, {"Llama 3 8B", "Llama-3-8B"}, {"LLAMA_3_8B", "Llama-3-8B"},
           {"meta-llama/Llama-3.1-8B", "Llama-3.1-8B"}, {"DeepSeek-V3", "DeepSeek-V3 / R1"}, {"deepseek-r1", "DeepSeek-V3 / R1"},
           {"r1", "DeepSeek-V3 / R1"}, {"DeepSeek-V3.2", "DeepSeek-V3.2"}, {"llama-3.3-70b", "Llama-3.1-70B (and Llama-3.3-70B)"},
           {"Llama-3.1-70B", "Llama-3.1-70B (and Llama-3.3-70B)"}, {"gpt2", "GPT-2 (124M)"}, {"command-r+", "Command-R+ (104B)"},
           {"command r v01", "Command-R v01 (35B)"}, {"gpt_oss_20b", "gpt-oss-20b"}, {"qwen2.5-7b", "Qwen2.5-7B"}})
    EXPECT_EQ(known(asked).name, found) << asked;
}

TEST(KnownModels, AnUnknownNameIsAnsweredWithTheNearestThree) {
  const auto shape = known_model("llama-3-9b");
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().code, ErrorCode::bad_input);
  EXPECT_THAT(shape.error().message, AllOf(HasSubstr("model 'llama-3-9b' is not known; the nearest of 77 that are: 'Llama-3-8B', "),
                                           HasSubstr("', '")));
  for (const std::string& name : {std::string(), std::string(100'000, 'x'), std::string("/"), std::string("\xff\n")})
    EXPECT_FALSE(known_model(name).ok());
}

TEST(KnownModels, FieldsWithoutASourceAreNamed) {
  EXPECT_THAT(known("Llama-1-7B").unverified, testing::ElementsAre("the number of parameters", "whether head and embedding are one matrix"));
  EXPECT_THAT(known("Llama-3-8B").unverified, testing::IsEmpty());
}

}  // namespace
}  // namespace kvasir::artifact
