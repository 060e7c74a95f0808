#include "model/architecture.hpp"

#include <array>

#include "model/footprint.hpp"

namespace kvasir::model {
namespace {

constexpr std::array kTable = {
    Architecture{.name = "llama"},
    Architecture{.name = "qwen2", .qkv_bias = true},
    Architecture{.name = "qwen3", .qk_norm = true},
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
