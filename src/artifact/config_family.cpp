#include "artifact/config_family.hpp"

#include <algorithm>
#include <iterator>

namespace kvasir::artifact {
namespace {

// Only what differs from a gated transformer with a head of its own whose window, if any, is every layer's.
constexpr Family kFamilies[] = {
    {"bloom", false, true, 0},      {"codegen", false, false, 0},   {"cohere", true, true, 0},
    {"cohere2", true, true, 4},     {"exaone4", true, false, 4},    {"gemma", true, true, 0},
    {"gemma2", true, true, 2},      {"gemma3", true, true, 6},      {"gemma3n", true, true, 5},
    {"gemma4", true, true, 6},      {"gpt2", false, true, 0},       {"gpt_bigcode", false, true, 0},
    {"gpt_neo", false, true, 0},    {"gpt_neox", false, false, 0},  {"gpt_oss", true, false, 2},
    {"gptj", false, false, 0},      {"lfm2", true, true, 0},        {"mpt", false, true, 0},
    {"nemotron", false, false, 0},  {"nemotron_h", false, false, 0}, {"olmo3", true, false, 4},
    {"opt", false, true, 0},        {"phi", false, false, 0},       {"smollm3", true, true, 0},
    {"starcoder2", false, true, 0},
    // Ties in code, but the published counts (7.217 and 41.8 billion) hold the head apart.
    {"falcon", false, false, 0},
};

// Families with nothing to add: their fields alone say what they are. Multimodal ones are here by their language model.
constexpr std::string_view kOthers[] = {
    "apertus", "aquila", "arcee", "aria", "aya_vision", "baichuan", "bamba", "bitnet", "chatglm", "cohere2_vision",
    "dbrx", "deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_vl_v2", "dots1",
    "ernie4_5", "ernie4_5_moe", "ernie4_5_vl", "exaone", "glm", "glm4", "glm4_moe", "glm4v", "glm4v_moe",
    "glm_moe_dsa", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "hunyuan", "hunyuan_v1_dense",
    "hunyuan_v1_moe", "idefics2", "idefics3", "internlm", "internlm2", "internlm3", "internvl", "internvl_chat",
    "jamba", "kimi_k2", "kimi_k25", "kimi_k3", "kimi_linear", "kimi_vl", "llama", "llama4", "llava", "llava_next",
    "llava_onevision", "mimo", "mimo_v2_flash", "minicpm", "minicpm3", "minicpmv", "minimax", "minimax_m1",
    "minimax_m2", "minimax_text_01", "ministral", "ministral3", "mistral", "mistral3", "mixtral", "olmo", "olmo2",
    "olmoe", "orion", "paligemma", "persimmon", "phi3", "phi3_v", "phi4_multimodal", "phi4mm", "phimoe", "pixtral",
    "qwen2", "qwen2_5_omni", "qwen2_5_vl", "qwen2_audio", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_5", "qwen3_5_moe",
    "qwen3_moe", "qwen3_next", "qwen3_omni_moe", "qwen3_vl", "qwen3_vl_moe",
    "seed_oss", "skywork", "smolvlm", "solar", "stablelm", "stablelm_epoch", "xverse", "yi"};

std::string_view without_text(std::string_view model_type) {
  constexpr std::string_view kNested = "_text";
  if (model_type.ends_with(kNested)) model_type.remove_suffix(kNested.size());
  return model_type;
}

}  // namespace

Family family_of(std::string_view model_type) {
  model_type = without_text(model_type);
  for (const Family& family : kFamilies)
    if (family.name == model_type) return family;
  return Family{.name = model_type};
}

std::vector<std::string> known_families() {
  std::vector<std::string> names(std::begin(kOthers), std::end(kOthers));
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_known_family(std::string_view model_type) {
  const std::vector<std::string> names = known_families();
  return std::binary_search(names.begin(), names.end(), without_text(model_type));
}

}  // namespace kvasir::artifact
