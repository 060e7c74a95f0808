#include "artifact/config_family.hpp"

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

}  // namespace

Family family_of(std::string_view model_type) {
  constexpr std::string_view kNested = "_text";
  if (model_type.ends_with(kNested)) model_type.remove_suffix(kNested.size());
  for (const Family& family : kFamilies)
    if (family.name == model_type) return family;
  return Family{.name = model_type};
}

}  // namespace kvasir::artifact
