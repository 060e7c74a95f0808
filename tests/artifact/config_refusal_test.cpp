// What config.json files are refused, and that the message names file, field, value and what would be valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artifact/config_json.hpp"
#include "artifact/config_text.hpp"

namespace kvasir::artifact {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Refusal {
  const char* patch;     // of the plain transformer below
  const char* message;   // a part of it
};

std::string message_of(std::string_view text) {
  const auto shape = shape_from_config(text, "c.json");
  return shape.ok() ? "accepted" : shape.error().message;
}

std::string refusal(const char* patch) {
  nlohmann::json config = {{"model_type", "llama"}, {"hidden_size", 64}, {"num_hidden_layers", 4}, {"num_attention_heads", 8},
                           {"num_key_value_heads", 2}, {"intermediate_size", 128}, {"vocab_size", 1000},
                           {"max_position_embeddings", 4096}};
  config.merge_patch(nlohmann::json::parse(patch));
  return message_of(config.dump());
}

constexpr Refusal kRefusals[] = {
    {R"({"hidden_size": null})", "field 'hidden_size' (or 'n_embd', 'd_model', 'hidden_dim') is missing; valid: whole numbers from 1 to 16777216"},
    {R"({"hidden_size": 0})", "field 'hidden_size' is 0; valid: whole numbers from 1 to 16777216"},
    {R"({"hidden_size": -64})", "field 'hidden_size' is -64; valid: whole"},
    {R"({"hidden_size": 64.5})", "field 'hidden_size' is 64.5; valid: whole"},
    {R"({"hidden_size": "64"})", "field 'hidden_size' is \"64\"; valid: whole"},
    {R"({"hidden_size": true})", "field 'hidden_size' is true; valid: whole"},
    {R"({"hidden_size": [64]})", "field 'hidden_size' is [64]; valid: whole"},
    {R"({"hidden_size": 100000000})", "field 'hidden_size' is 100000000; valid: whole"},
    {R"({"hidden_size": 18446744073709551615})", "field 'hidden_size' is 18446744073709551615; valid: whole"},
    {R"({"hidden_size": 1e30})", "field 'hidden_size' is 1e+30; valid: whole"},
    {R"({"num_hidden_layers": 0})", "field 'num_hidden_layers' is 0; valid: whole numbers from 1 to 65536"},
    {R"({"num_hidden_layers": 70000})", "field 'num_hidden_layers' is 70000; valid: whole numbers from 1 to 65536"},
    {R"({"num_hidden_layers": null})", "field 'num_hidden_layers' (or 'n_layer', 'n_layers', 'num_layers') is missing"},
    {R"({"num_attention_heads": 0})", "field 'num_attention_heads' is 0; valid: whole numbers from 1 to 65536"},
    {R"({"num_attention_heads": 7, "num_key_value_heads": 7})", "field 'head_dim' is missing; valid: a whole number from 1 to 65536, for a width of 64 over 7 heads is none"},
    {R"({"num_key_value_heads": 3})", "field 'num_key_value_heads' is 3; valid: a divisor of 8 query heads"},
    {R"({"num_key_value_heads": 16})", "field 'num_key_value_heads' is 16; valid: a divisor of 8 query heads"},
    {R"({"num_key_value_heads": 0})", "field 'num_key_value_heads' is 0; valid: whole numbers from 1 to 65536"},
    {R"({"num_key_value_heads": [2, 2, 2]})", "field 'num_key_value_heads' is a list of 3 entries; valid: a list of 4 entries, one a layer"},
    {R"({"num_key_value_heads": [2, 2, 2, 3]})", "field 'num_key_value_heads' is 3; valid: a divisor of 8 query heads"},
    {R"({"num_key_value_heads": [2, 2, "2", 2]})", "field 'num_key_value_heads[2]' is \"2\"; valid: whole"},
    {R"({"num_key_value_heads": [0, 0, 0, 0]})", "no layer keeps anything; at least one has attention or a state"},
    {R"({"head_dim": 0})", "field 'head_dim' is 0; valid: whole numbers from 1 to 65536"},
    {R"({"head_dim": 70000})", "field 'head_dim' is 70000; valid: whole numbers from 1 to 65536"},
    {R"({"vocab_size": -1})", "field 'vocab_size' is -1; valid: whole numbers from 1 to 2147483647"},
    {R"({"vocab_size": null})", "field 'vocab_size' (or 'padded_vocab_size') is missing"},
    {R"({"max_position_embeddings": null})", "field 'max_position_embeddings' (or 'n_positions', 'max_seq_len', 'seq_length', 'n_ctx', 'max_sequence_length') is missing"},
    {R"({"max_position_embeddings": 0})", "field 'max_position_embeddings' is 0"},
    {R"({"model_type": 7})", "field 'model_type' is 7; valid: a string"},
    {R"({"model_type": "qwen9"})", "field 'model_type' is \"qwen9\"; valid: families known here, nearest qwen2, qwen3"},
    {R"({"tie_word_embeddings": "yes"})", "field 'tie_word_embeddings' is \"yes\"; valid: true or false"},
    {R"({"torch_dtype": "float12"})", "field 'torch_dtype' is \"float12\"; valid: float64, float32, float16, bfloat16"},
    {R"({"quantization_config": 4})", "field 'quantization_config' is 4; valid: an object"},
    {R"({"quantization_config": {"bits": 0}})", "field 'quantization_config.bits' is 0; valid: whole numbers from 1 to 64"},
    {R"({"quantization_config": {"quant_method": "magic"}})", "field 'quantization_config' is without bits; valid: a field 'bits'"},
    {R"({"sliding_window": 0})", "field 'sliding_window' is 0; valid: whole numbers from 1 to 2147483647"},
    {R"({"sliding_window": "4k"})", "field 'sliding_window' is \"4k\"; valid: whole"},
    {R"({"sliding_window": 10, "sliding_window_pattern": 0})", "field 'sliding_window_pattern' is 0; valid: whole"},
    {R"({"sliding_window": 10, "sliding_window_pattern": "LLX"})", "field 'sliding_window_pattern' is \"LLX\"; valid: a whole number, or letters L (window) and G (full)"},
    {R"({"use_sliding_window": 1, "sliding_window": 10})", "field 'use_sliding_window' is 1; valid: true or false"},
    {R"({"layer_types": ["full_attention"]})", "field 'layer_types' is a list of 1 entries; valid: a list of 4 entries, one a layer"},
    {R"({"layer_types": "full_attention"})", "field 'layer_types' is \"full_attention\"; valid: a list of 4 entries"},
    {R"({"layer_types": ["full_attention", "full_attention", "magic", "conv"]})", "field 'layer_types[2]' is \"magic\"; valid: full_attention, attention"},
    {R"({"layer_types": ["full_attention", 1, "conv", "conv"]})", "field 'layer_types[1]' is 1; valid: a string"},
    {R"({"layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"]})", "field 'sliding_window' (or 'sliding_window_size') is missing"},
    {R"({"layer_types": ["conv", "full_attention", "full_attention", "full_attention"]})", "field 'conv_L_cache' is missing"},
    {R"({"layer_types": ["mamba", "full_attention", "full_attention", "full_attention"]})", "field 'mamba_d_state' is missing"},
    {R"({"attention_chunk_size": -3})", "field 'attention_chunk_size' is -3"},
    {R"({"attention_chunk_size": 64, "no_rope_layers": [1, 1]})", "field 'no_rope_layers' is a list of 2 entries; valid: a list of 4 entries"},
    {R"({"hybrid_override_pattern": "M*"})", "field 'hybrid_override_pattern' is 2 characters; valid: 4 characters, one a layer"},
    {R"({"hybrid_override_pattern": "M*?-"})", "field 'hybrid_override_pattern[2]' is \"?\"; valid: M (Mamba), * (attention)"},
    {R"({"hybrid_override_pattern": "----"})", "no layer keeps anything"},
    {R"({"hybrid_layer_pattern": [0, 1, 2, 0], "sliding_window": 8})", "field 'hybrid_layer_pattern[2]' is 2; valid: whole numbers from 0 to 1"},
    {R"({"attn_type_list": [0, 1]})", "field 'attn_type_list' is a list of 2 entries"},
    {R"({"attn_layer_period": 8, "attn_layer_offset": 8})", "field 'attn_layer_offset' is 8; valid: whole numbers from 0 to 7"},
    {R"({"linear_attn_config": {"kda_layers": [1, 5]}})", "field 'linear_attn_config.kda_layers[1]' is 5; valid: whole numbers from 1 to 4"},
    {R"({"linear_attn_config": {"kda_layers": [1, 2], "full_attn_layers": [2, 3, 4]}})", "naming layer 2 twice"},
    {R"({"linear_attn_config": {"kda_layers": [1, 2], "full_attn_layers": [4]}})", "is without layer 3 (with full_attn_layers); valid: each layer once"},
    {R"({"kv_lora_rank": 512})", "field 'qk_rope_head_dim' is missing"},
    {R"({"kv_lora_rank": 65536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64})", "field 'kv_lora_rank' is 65536; valid: at most 65472"},
    {R"({"compress_ratios": [0, 4], "head_dim": 8, "sliding_window": 8})", "field 'compress_ratios' is a list of 2 entries; valid: a list of 4 entries"},
    {R"({"full_attention_interval": 2, "linear_num_value_heads": 5, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4})",
     "field 'linear_num_key_heads' is 2; valid: a divisor of 5 value heads"},
    {R"({"num_experts": 8, "num_experts_per_tok": 9, "moe_intermediate_size": 32})", "field 'num_experts_per_tok' is 9; valid: whole numbers from 1 to 8"},
    {R"({"num_experts": 100000})", "field 'num_experts' is 100000; valid: whole numbers from 0 to 65536"},
    {R"({"num_experts": 8, "intermediate_size": null})", "field 'moe_intermediate_size' (or 'expert_ffn_hidden_size'"},
    {R"({"num_experts": 8, "mlp_only_layers": [4]})", "field 'mlp_only_layers[0]' is 4; valid: whole numbers from 0 to 3"},
    {R"({"num_experts": 8, "first_k_dense_replace": 4})", "field 'num_experts' is 8; valid: fields that leave a layer with experts"},
    {R"({"num_experts": 8, "mlp_layer_types": ["dense", "sparse", "thin", "sparse"]})", "field 'mlp_layer_types[2]' is \"thin\"; valid: dense, sparse"},
    {R"({"num_kv_shared_layers": 4})", "field 'num_kv_shared_layers' is 4; valid: whole numbers from 0 to 3"},
    {R"({"text_config": 5})", "field 'text_config' is 5; valid: an object"},
    {R"({"text_config": {"hidden_size": 64}})", "field 'text_config.vocab_size' (or 'padded_vocab_size') is missing"},
    {R"({"hidden_size": 16777216, "num_attention_heads": 65536, "num_key_value_heads": 65536, "num_hidden_layers": 65536, "intermediate_size": 16777216, "num_experts": 65536})",
     "its sizes give more than 9007199254740992 weights"},
};

TEST(ConfigRefusal, NamesFileFieldValueAndWhatWouldBeValid) {
  for (const Refusal& row : kRefusals) {
    EXPECT_THAT(refusal(row.patch), HasSubstr(row.message)) << row.patch;
    EXPECT_THAT(refusal(row.patch), StartsWith("c.json: ")) << row.patch;
  }
  EXPECT_EQ(refusal("{}"), "accepted");
}

TEST(ConfigRefusal, EncoderDecodersAreNotOffered) {
  const auto shape = shape_from_config(R"({"is_encoder_decoder": true})", "c.json");
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().code, ErrorCode::unsupported);
}

TEST(ConfigRefusal, TextsThatAreNoConfig) {
  EXPECT_THAT(message_of(""), HasSubstr("is not valid JSON at byte"));
  EXPECT_THAT(message_of("{\"hidden_size\": 6"), HasSubstr("is not valid JSON at byte"));
  EXPECT_THAT(message_of("{} {}"), HasSubstr("is not valid JSON at byte"));
  EXPECT_THAT(message_of("[1, 2]"), HasSubstr("is a JSON array; an object is valid"));
  EXPECT_THAT(message_of("5"), HasSubstr("is a JSON number; an object is valid"));
  EXPECT_THAT(message_of("\xff\xfe{}"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(message_of(R"({"hidden_size": 64, "hidden_size": 32})"), HasSubstr("the field 'hidden_size' is given twice; valid: once"));
}

TEST(ConfigRefusal, WhatPythonWritesForInfinityIsRead) {
  EXPECT_THAT(message_of(R"({"time_step_limit": [0.0, Infinity, -Infinity, NaN], "a": "Infinity \" NaN"})"),
              HasSubstr("field 'hidden_size'"));
  EXPECT_THAT(message_of(R"({"hidden_size": Infinity})"), HasSubstr("field 'hidden_size' is \"infin.\""));
}

// Deep nesting is refused by a count, not by the stack; many values and large files by limits.
TEST(ConfigRefusal, HostileSizesAreLimits) {
  EXPECT_THAT(message_of(std::string(100'000, '[')), HasSubstr("is nested deeper than 32 levels; valid: at most 32"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(message_of(objects), HasSubstr("is nested deeper than 32 levels"));
  std::string values = "{\"a\": [0";
  for (std::size_t i = 0; i < kMaxConfigValues; ++i) values += ",0";
  EXPECT_THAT(message_of(values + "]}"), HasSubstr("has more than 262144 values; valid: at most 262144"));
  EXPECT_THAT(message_of(std::string(kMaxConfigBytes + 1, ' ')), HasSubstr("has 16777217 bytes; a config has at most 16777216"));
}

}  // namespace
}  // namespace kvasir::artifact
