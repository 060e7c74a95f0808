#include "artifact/config_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "artifact/known_models.hpp"
#include "artifact/parameter_count.hpp"

namespace kvasir::artifact {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kConfigs = std::string(KVASIR_SOURCE_DIR) + "/tests/data/configs/";

// A config of tests/data/configs and the row of the built-in table that it must agree with.
struct Published {
  const char* file;
  const char* known;
  double billions = 0;   // of weights, as published; 0 = not published or not countable
  double active = 0;
};

void PrintTo(const Published& published, std::ostream* out) { *out << published.file; }

class PublishedConfig : public testing::TestWithParam<Published> {};

TEST_P(PublishedConfig, KeepsLayerByLayerWhatTheTableSays) {
  const auto shape = read_config(kConfigs + GetParam().file + ".json");
  ASSERT_TRUE(shape.ok()) << shape.error().message;
  const auto known = known_model(GetParam().known);
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(shape->width, known->width);
  EXPECT_EQ(shape->heads, known->heads);
  EXPECT_EQ(shape->query_rank, known->query_rank);
  EXPECT_EQ(shape->nope_dim, known->nope_dim);
  EXPECT_EQ(shape->rope_dim, known->rope_dim);
  EXPECT_EQ(shape->value_dim, known->value_dim);
  ASSERT_EQ(shape->layers.size(), known->layers.size());
  for (std::size_t at = 0; at < known->layers.size(); ++at) {
    LayerShape kept = shape->layers[at];   // the table has no feed-forward, nor weights beside what a state implies
    kept.feed_forward = kept.experts = kept.shared_experts = kept.expert_width = 0;
    kept.mixer_parameters = known->layers[at].mixer_parameters;
    EXPECT_EQ(kept, known->layers[at]) << "layer " << at;
  }
}

TEST_P(PublishedConfig, HasAsManyWeightsAsPublished) {
  if (GetParam().billions == 0) return;
  const auto shape = read_config(kConfigs + GetParam().file + ".json");
  ASSERT_TRUE(shape.ok()) << shape.error().message;
  EXPECT_NEAR(static_cast<double>(shape->parameters) / 1e9, GetParam().billions, 0.02 * GetParam().billions);
  EXPECT_EQ(shape->parameters, counted_parameters(*shape));
  if (GetParam().active != 0) {
    EXPECT_NEAR(static_cast<double>(shape->active_parameters) / 1e9, GetParam().active, 0.06 * GetParam().active);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Configs, PublishedConfig,
    testing::Values(Published{"llama-3.1-8b", "Llama-3.1-8B", 8.03}, Published{"smollm2-135m", "SmolLM2-135M", 0.135},
                    Published{"mistral-7b-v0.1", "Mistral-7B-v0.1", 7.24}, Published{"mixtral-8x7b", "Mixtral-8x7B-v0.1", 46.7, 12.9},
                    Published{"qwen2.5-7b", "Qwen2.5-7B", 7.61}, Published{"qwen3-4b", "Qwen3-4B", 4.02},
                    Published{"qwen3-30b-a3b", "Qwen3-30B-A3B", 30.5, 3.3}, Published{"qwen3-next-80b-a3b", "Qwen3-Next-80B-A3B", 80},
                    Published{"qwen3.5-27b", "Qwen3.5-27B", 27}, Published{"gemma-2-9b", "Gemma-2-9B", 9.24},
                    Published{"gemma-3-4b", "Gemma-3-4B", 3.88}, Published{"gemma-4-26b-a4b", "Gemma-4-26B-A4B"},
                    Published{"phi-3-mini-4k", "Phi-3-mini-4k", 3.82}, Published{"deepseek-v2-lite", "DeepSeek-V2-Lite", 15.7},
                    Published{"deepseek-v3", "DeepSeek-V3 / R1", 671, 37}, Published{"deepseek-v3.2", "DeepSeek-V3.2", 671, 37},
                    Published{"kimi-k2", "Kimi-K2", 1026, 32}, Published{"kimi-k3", "Kimi-K3"}, Published{"glm-5", "GLM-5"},
                    Published{"deepseek-v4-flash", "DeepSeek-V4-Flash"}, Published{"gpt-oss-20b", "gpt-oss-20b", 20.9},
                    Published{"falcon-7b", "Falcon-7B", 7.217}, Published{"falcon-40b", "Falcon-40B", 41.8},
                    Published{"mpt-7b", "MPT-7B", 6.65}, Published{"gpt-2", "GPT-2", 0.124}, Published{"opt-13b", "OPT-13B", 12.85},
                    Published{"command-r-v01", "Command-R v01", 35}, Published{"glm-4-9b", "GLM-4-9B", 9.4},
                    Published{"glm-4.5-air", "GLM-4.5-Air", 106}, Published{"llama-4-scout", "Llama-4-Scout-17B-16E", 109, 17},
                    Published{"minimax-text-01", "MiniMax-Text-01", 456, 45.9},
                    Published{"nemotron-3-nano-30b-a3b", "Nemotron-3-Nano-30B-A3B", 31.6},
                    Published{"nemotron-h-56b", "Nemotron-H-56B", 56}, Published{"mimo-v2-flash", "MiMo-V2-Flash", 309, 15},
                    Published{"jamba-v0.1", "Jamba-v0.1", 52, 12}),
    [](const testing::TestParamInfo<Published>& entry) {
      std::string name = entry.param.file;
      for (char& c : name)
        if (c == '-' || c == '.') c = '_';
      return name;
    });

// Small configs for what no model above shows: a plain transformer and a patch.
nlohmann::json base() {
  return {{"model_type", "llama"}, {"hidden_size", 64}, {"num_hidden_layers", 4}, {"num_attention_heads", 8},
          {"num_key_value_heads", 2}, {"intermediate_size", 128}, {"vocab_size", 1000}, {"max_position_embeddings", 4096}};
}

Result<ModelShape> read(const std::string& patch) {
  nlohmann::json config = base();
  config.merge_patch(nlohmann::json::parse(patch));
  return shape_from_config(config.dump(), "c.json");
}

ModelShape shape(const std::string& patch) {
  auto read_one = read(patch);
  EXPECT_TRUE(read_one.ok()) << patch << ": " << (read_one.ok() ? "" : read_one.error().message);
  return read_one.ok() ? *read_one : ModelShape{};
}

template <class T>
std::vector<T> each(const ModelShape& shape, T LayerShape::*member) {
  std::vector<T> values;
  for (const LayerShape& layer : shape.layers) values.push_back(layer.*member);
  return values;
}

TEST(ConfigShape, APlainTransformer) {
  const ModelShape plain = shape("{}");
  EXPECT_EQ(plain.family, "llama");
  EXPECT_EQ(plain.name, "llama");
  EXPECT_TRUE(plain.gated);
  EXPECT_FALSE(plain.tied_head);
  EXPECT_EQ(plain.weight_bits, 16);
  EXPECT_EQ(plain.layers[0], (LayerShape{.kv_heads = 2, .k_dim = 8, .v_dim = 8, .feed_forward = 128}));
  EXPECT_EQ(plain.said_by.at("layers"), "num_hidden_layers");
  EXPECT_EQ(plain.said_by.at("kv_heads"), "num_key_value_heads");
  EXPECT_EQ(plain.said_by.at("head_dim"), "hidden_size / num_attention_heads");
  EXPECT_EQ(plain.said_by.at("tied_head"), "default of llama");
  EXPECT_EQ(plain.said_by.at("parameters"), "counted");
}

TEST(ConfigShape, WithoutAFamilyItIsPlainAndSaidToBeUnverified) {
  EXPECT_THAT(shape("{}").unverified, IsEmpty());
  const ModelShape none = shape(R"({"model_type": null})");
  EXPECT_EQ(none.layers, shape("{}").layers);
  EXPECT_THAT(none.unverified, ElementsAre(HasSubstr("model_type: the file has none")));
}

TEST(ConfigShape, AFamilyByHandReadsAnUnknownOne) {
  const std::string text = R"({"model_type": "newest", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
      "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096, "sliding_window": 64})";
  EXPECT_THAT(shape_from_config(text, "c.json").error().message, HasSubstr("'model_type' is \"newest\""));
  EXPECT_THAT(each(*shape_from_config(text, "c.json", "llama"), &LayerShape::window), ElementsAre(64, 64));
  EXPECT_THAT(each(*shape_from_config(text, "c.json", "gemma2"), &LayerShape::window), ElementsAre(64, 0));
  EXPECT_THAT(shape_from_config(text, "c.json", "nonsense").error().message, HasSubstr("field 'family' is \"nonsense\""));
}

TEST(ConfigShape, KvHeadsMayBeAbsentAListOrFlags) {
  EXPECT_THAT(each(shape(R"({"num_key_value_heads": null})"), &LayerShape::kv_heads), Each(8u));
  EXPECT_THAT(each(shape(R"({"num_key_value_heads": [8, 4, 2, 1]})"), &LayerShape::kv_heads), ElementsAre(8, 4, 2, 1));
  const ModelShape skips = shape(R"({"num_key_value_heads": [0, 4, 0, 4]})");
  EXPECT_THAT(each(skips, &LayerShape::kv_heads), ElementsAre(0, 4, 0, 4));
  EXPECT_THAT(each(skips, &LayerShape::memory),
              ElementsAre(Memory::none, Memory::attention, Memory::none, Memory::attention));
  EXPECT_THAT(each(shape(R"({"model_type": "gpt_bigcode"})"), &LayerShape::kv_heads), Each(1u));
  EXPECT_THAT(each(shape(R"({"model_type": "gpt_bigcode", "multi_query": false})"), &LayerShape::kv_heads), Each(2u));
  EXPECT_THAT(each(shape(R"({"model_type": "mpt", "num_key_value_heads": null, "attn_config": {"kv_n_heads": 4}})"),
                   &LayerShape::kv_heads), Each(4u));
  EXPECT_THAT(each(shape(R"({"attn_config": {"attn_type": "multiquery_attention"}})"), &LayerShape::kv_heads), Each(1u));
}

struct Windows {
  const char* patch;
  std::vector<std::uint32_t> expected;
};

TEST(ConfigShape, WindowsOfEverySpelling) {
  for (const Windows& windows :
       {Windows{R"({"sliding_window": 100})", {100, 100, 100, 100}}, Windows{R"({"sliding_window": null})", {0, 0, 0, 0}},
        Windows{R"({"sliding_window": 100, "use_sliding_window": false})", {0, 0, 0, 0}},
        Windows{R"({"model_type": "qwen2", "sliding_window": 100})", {0, 0, 0, 0}},
        Windows{R"({"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": true, "max_window_layers": 3})", {0, 0, 0, 100}},
        Windows{R"({"sliding_window": 100, "sliding_window_pattern": 2})", {100, 0, 100, 0}},
        Windows{R"({"sliding_window": 100, "sliding_window_pattern": "LLG"})", {100, 100, 0, 100}},
        Windows{R"({"model_type": "cohere2", "sliding_window": 100})", {100, 100, 100, 0}},
        Windows{R"({"model_type": "gemma3_text", "sliding_window": 100, "_sliding_window_pattern": 4})", {100, 100, 100, 0}},
        Windows{R"({"sliding_window": 100, "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]})",
                {0, 100, 0, 100}},
        Windows{R"({"sliding_window": 5000})", {0, 0, 0, 0}}, Windows{R"({"sliding_window": 4096})", {0, 0, 0, 0}},
        Windows{R"({"sliding_window": 4095})", {4095, 4095, 4095, 4095}},
        Windows{R"({"attention_chunk_size": 64})", {64, 64, 64, 0}},
        Windows{R"({"attention_chunk_size": 64, "no_rope_layers": [1, 0, 1, 0]})", {64, 0, 64, 0}},
        Windows{R"({"attention_chunk_size": 64, "no_rope_layers": [], "no_rope_layer_interval": 2})", {64, 0, 64, 0}},
        Windows{R"({"hybrid_layer_pattern": [0, 1, 1, 0], "sliding_window_size": 32})", {0, 32, 32, 0}}})
    EXPECT_EQ(each(shape(windows.patch), &LayerShape::window), windows.expected) << windows.patch;
  EXPECT_THAT(each(shape(R"({"attention_chunk_size": 64})"), &LayerShape::chunked), ElementsAre(true, true, true, false));
}

TEST(ConfigShape, OtherHybrids) {
  const ModelShape granite = shape(R"({"layer_types": ["mamba", "attention", "mamba", "attention"], "mamba_n_heads": 4, "mamba_d_head": "auto",
      "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2})");
  EXPECT_THAT(each(granite, &LayerShape::state_elements), ElementsAre(4 * 32 * 16 + (128 + 32) * 3, 0, 2528, 0));
  EXPECT_THAT(each(granite, &LayerShape::feed_forward), Each(128u));
  const ModelShape lfm2 = shape(R"({"model_type": "lfm2", "layer_types": ["conv", "full_attention", "conv", "conv"], "conv_L_cache": 3})");
  EXPECT_THAT(each(lfm2, &LayerShape::state_elements), ElementsAre(128, 0, 128, 128));
  const ModelShape nemotron = shape(R"({"model_type": "nemotron_h", "num_hidden_layers": null, "layers_block_type": ["mamba", "moe", "attention", "mlp"],
      "mamba_num_heads": 4, "mamba_head_dim": 8, "ssm_state_size": 16, "n_routed_experts": 4, "moe_intermediate_size": 32})");
  EXPECT_THAT(each(nemotron, &LayerShape::memory),
              ElementsAre(Memory::recurrent, Memory::none, Memory::attention, Memory::none));
  EXPECT_THAT(each(nemotron, &LayerShape::experts), ElementsAre(0, 4, 0, 0));
  EXPECT_THAT(each(nemotron, &LayerShape::feed_forward), ElementsAre(0, 0, 0, 128));
  const ModelShape shared = shape(R"({"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8})");
  EXPECT_THAT(each(shared, &LayerShape::memory), ElementsAre(Memory::attention, Memory::attention, Memory::none, Memory::none));
  EXPECT_EQ(shared.other_parameters, (1000 + 3 * 64) * 4 * 8u);
}

TEST(ConfigShape, ExpertsOfEverySpelling) {
  struct Experts {
    const char* patch;
    std::vector<std::uint32_t> experts, feed_forward;
    std::uint32_t shared = 0;
  };
  for (const Experts& expected :
       {Experts{R"({"num_experts": 8, "moe_intermediate_size": 32, "decoder_sparse_step": 2})", {0, 8, 0, 8}, {128, 0, 128, 0}},
        Experts{R"({"num_experts": 8, "moe_intermediate_size": 32, "mlp_only_layers": [0, 3]})", {0, 8, 8, 0}, {128, 0, 0, 128}},
        Experts{R"({"n_routed_experts": 8, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "n_shared_experts": 2})",
                {0, 8, 8, 8}, {128, 0, 0, 0}, 2},
        Experts{R"({"n_routed_experts": 8, "moe_intermediate_size": 32, "moe_layer_freq": 2})", {8, 0, 8, 0}, {0, 128, 0, 128}},
        Experts{R"({"n_routed_experts": 8, "moe_intermediate_size": 32, "moe_layer_freq": [0, 0, 1, 1]})", {0, 0, 8, 8}, {128, 128, 0, 0}},
        Experts{R"({"num_local_experts": 8, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 256})", {0, 8, 0, 8}, {256, 0, 256, 0}},
        Experts{R"({"num_local_experts": 8, "moe_layers": [2]})", {0, 0, 8, 0}, {128, 128, 0, 128}},
        Experts{R"({"num_experts": 8, "expert_layer_period": 2, "expert_layer_offset": 1})", {0, 8, 0, 8}, {128, 0, 128, 0}},
        Experts{R"({"num_experts": 8, "moe_intermediate_size": 32, "mlp_layer_types": ["dense", "sparse", "dense", "sparse"]})",
                {0, 8, 0, 8}, {128, 0, 128, 0}},
        Experts{R"({"num_experts": 8, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 128})", {8, 8, 8, 8}, {0, 0, 0, 0}, 4},
        Experts{R"({"num_experts": 8, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 100})", {8, 8, 8, 8}, {100, 100, 100, 100}},
        Experts{R"({"num_experts": 1})", {0, 0, 0, 0}, {128, 128, 128, 128}},
        Experts{R"({"ffn_config": {"moe_num_experts": 8, "moe_top_k": 2, "ffn_hidden_size": 64}, "intermediate_size": null})",
                {8, 8, 8, 8}, {0, 0, 0, 0}}}) {
    const ModelShape read_one = shape(expected.patch);
    EXPECT_EQ(each(read_one, &LayerShape::experts), expected.experts) << expected.patch;
    EXPECT_EQ(each(read_one, &LayerShape::feed_forward), expected.feed_forward) << expected.patch;
    for (const LayerShape& layer : read_one.layers) EXPECT_EQ(layer.shared_experts, layer.experts != 0 ? expected.shared : 0) << expected.patch;
  }
}

TEST(ConfigShape, BitsOfAWeight) {
  struct Bits {
    const char* patch;
    double bits;
  };
  for (const Bits& expected :
       {Bits{"{}", 16}, Bits{R"({"torch_dtype": "float32"})", 32}, Bits{R"({"dtype": "torch.bfloat16"})", 16},
        Bits{R"({"torch_dtype": "bfloat16", "quantization_config": null})", 16},
        Bits{R"({"quantization_config": {"quant_method": "fp8"}})", 8}, Bits{R"({"quantization_config": {"quant_method": "mxfp4"}})", 4.25},
        Bits{R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}})", 4.15625},
        Bits{R"({"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": -1}})", 8},
        Bits{R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})", 4},
        Bits{R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})", 4.5},
        Bits{R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}}})", 8}})
    EXPECT_EQ(shape(expected.patch).weight_bits, expected.bits) << expected.patch;
}

TEST(ConfigShape, TiedHeads) {
  EXPECT_TRUE(shape(R"({"tie_word_embeddings": true})").tied_head);
  EXPECT_FALSE(shape(R"({"model_type": "llama"})").tied_head);
  for (const char* family : {"gemma", "gemma2", "cohere", "gpt2", "opt", "mpt", "bloom"})
    EXPECT_TRUE(shape(std::string(R"({"model_type": ")") + family + "\"}").tied_head) << family;
  EXPECT_FALSE(shape(R"({"model_type": "gemma2", "tie_word_embeddings": false})").tied_head);
}

TEST(ConfigShape, ALanguageModelWithinAnother) {
  nlohmann::json whole = {{"model_type", "viewer"}, {"text_config", base()}, {"tie_word_embeddings", true}};
  const auto nested = shape_from_config(whole.dump(), "c.json");
  ASSERT_TRUE(nested.ok()) << nested.error().message;
  EXPECT_EQ(nested->family, "llama");
  EXPECT_TRUE(nested->tied_head);
  EXPECT_EQ(nested->said_by.at("width"), "text_config.hidden_size");
  whole["text_config"]["hidden_size"] = "big";
  EXPECT_EQ(shape_from_config(whole.dump(), "c.json").error().message,
            "c.json: field 'text_config.hidden_size' is \"big\"; valid: whole numbers from 1 to 16777216");
}

TEST(ConfigShape, AFolderStandsForItsConfig) {
  const std::filesystem::path folder = std::filesystem::path(KVASIR_BINARY_DIR) / "config_json_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << base().dump();
  EXPECT_TRUE(read_config(folder.string()).ok());
  EXPECT_TRUE(read_config((folder / "config.json").string()).ok());
  const auto missing = read_config((folder / "other.json").string());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace kvasir::artifact
