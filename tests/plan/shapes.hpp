// Shapes of well-known models, as their papers and configurations give them.
#pragma once

#include <cstdint>

#include "artifact/model_shape.hpp"

namespace kvasir::plan::test {

inline artifact::ModelShape plain(std::uint32_t layers, std::uint32_t width, std::uint32_t heads, std::uint32_t kv_heads,
                                  std::uint32_t head_dim) {
  artifact::ModelShape shape;
  shape.name = "plain";
  shape.family = "plain";
  shape.width = width;
  shape.heads = heads;
  shape.vocabulary = 32'000;
  shape.context = 131'072;
  shape.layers.assign(layers, {.kv_heads = kv_heads, .k_dim = head_dim, .v_dim = head_dim});
  return shape;
}

inline artifact::ModelShape llama2_7b() { return plain(32, 4096, 32, 32, 128); }
inline artifact::ModelShape llama3_70b() { return plain(80, 8192, 64, 8, 128); }

inline artifact::ModelShape deepseek(std::uint32_t layers) {
  artifact::ModelShape shape = plain(layers, 5120, 128, 128, 192);
  for (artifact::LayerShape& layer : shape.layers) {
    layer = {.memory = artifact::Memory::latent, .kv_heads = 1, .k_dim = 512 + 64, .v_dim = 0};
  }
  return shape;
}

// Every (local + 1)-th layer keeps all history, the others a window.
inline artifact::ModelShape windowed(std::uint32_t layers, std::uint32_t local, std::uint32_t window) {
  artifact::ModelShape shape = plain(layers, 1152, 4, 1, 256);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    if ((layer + 1) % (local + 1) != 0) shape.layers[layer].window = window;
  }
  return shape;
}

}  // namespace kvasir::plan::test
