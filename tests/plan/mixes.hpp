// Mixes and shapes that the tests of length mixes share.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "plan/kv_groups.hpp"
#include "plan/length_mix.hpp"
#include "tests/plan/shapes.hpp"

namespace kvasir::plan::test {

inline LengthMix mix(std::string_view text) { return parse_mix(text).value(); }

inline KvGroups groups(const artifact::ModelShape& shape, std::uint32_t block_tokens = 32) {
  return kv_groups(shape, {{format::KvType::f16, format::KvType::f16}, block_tokens}).value();
}

// Every kind of group: full, windows that end inside a block and with it, chunks, merged rows beside recent ones,
// states.
inline artifact::ModelShape many_kinds() {
  artifact::ModelShape shape = plain(8, 512, 8, 2, 64);
  shape.layers[0].window = 100;
  shape.layers[1].window = 128;
  shape.layers[2].window = 256;
  shape.layers[2].chunked = true;
  shape.layers[3].merged = 4;
  shape.layers[3].recent = 70;
  shape.layers[4] = {.memory = artifact::Memory::recurrent, .state_elements = 1000, .state_bytes = 4};
  shape.layers[5] = {.memory = artifact::Memory::latent, .kv_heads = 1, .k_dim = 512 + 64, .v_dim = 0};
  return shape;
}

}  // namespace kvasir::plan::test
