#include "model/architecture.hpp"

#include <array>

#include "model/footprint.hpp"

namespace kvasir::model {
namespace {

constexpr std::array kTable = {
    Architecture{.name = "llama"},
    Architecture{.name = "qwen2", .qkv_bias = true},
    Architecture{.name = "qwen3", .qk_norm = QkNorm::head},
    Architecture{.name = "gemma3", .qk_norm = QkNorm::head, .norms = Norms::both, .activation = Activation::gelu},
    Architecture{.name = "phi3", .fused = true},
    Architecture{.name = "granite"},
    Architecture{.name = "olmo2", .qk_norm = QkNorm::width, .norms = Norms::after},
    Architecture{.name = "smollm3"},
    // Without experts (feed-forward as in llama): attention alone is that of the published models.
    Architecture{.name = "gpt-oss", .qkv_bias = true, .output_bias = true, .feed_forward_norm = "post_attention_norm", .sinks = true},
};

}  // namespace

std::span<const Architecture> architecture_table() { return kTable; }

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& row : kTable)
    if (row.name == name) return &row;
  return nullptr;
}

bool has_forward_pass(std::string_view architecture) { return find_architecture(architecture) != nullptr; }

}  // namespace kvasir::model
