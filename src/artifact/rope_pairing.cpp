// Source of the table: llama.cpp's rope type by architecture. Architectures whose type changed between its versions, or
// that rotate by other rules (sections, multimodal), are left out: a wrong pairing fails silently.
#include <algorithm>
#include <array>

#include "artifact/geometry.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::array<std::string_view, 21> kInterleaved = {
    "arcee",   "arctic",  "baichuan", "bailingmoe", "chameleon",  "chatglm",   "cohere2",
    "command-r", "deci",  "deepseek", "deepseek2",  "ernie4_5",   "granite",   "granitemoe",
    "internlm2", "llama", "minicpm",  "olmo",       "plm",        "smollm3",   "xverse",
};

constexpr std::array<std::string_view, 28> kHalves = {
    "bitnet",  "codeshell", "dbrx",  "exaone", "falcon",   "gemma",    "gemma2",   "gemma3",     "gemma3n",
    "gpt-oss", "gptneox",   "grok",  "minicpm3", "nemotron", "nomic-bert", "olmo2", "olmoe",     "openelm",
    "gpt-oss-dense",
    "phi2",    "phi3",      "phimoe", "qwen",  "qwen2",    "qwen3",    "qwen3moe", "stablelm",   "starcoder2",
};

bool holds(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

RopePairing rope_pairing(std::string_view architecture) {
  if (holds(kInterleaved, architecture)) return RopePairing::interleaved;
  if (holds(kHalves, architecture)) return RopePairing::halves;
  return RopePairing::none;
}

std::string_view to_string(RopePairing pairing) {
  switch (pairing) {
    case RopePairing::none: return "none";
    case RopePairing::interleaved: return "interleaved";
    case RopePairing::halves: return "halves";
  }
  return "?";
}

std::string_view to_string(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none: return "none";
    case RopeScaling::linear: return "linear";
    case RopeScaling::llama3: return "llama3";
    case RopeScaling::yarn: return "yarn";
    case RopeScaling::longrope: return "longrope";
  }
  return "?";
}

}  // namespace kvasir::artifact
