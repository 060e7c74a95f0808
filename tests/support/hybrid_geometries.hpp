// Geometries of models whose layers keep different spans of history, in f16 and blocks of 32 tokens: what tests and benchmarks
// of the shared arena play.
#pragma once

#include <cstdint>
#include <numeric>
#include <string_view>

#include "format/block_layout.hpp"

namespace kvasir::test {

struct NamedGeometry {
  std::string_view name, what;
  format::KvGeometry geometry;
};

inline format::CacheGroup hybrid_group(std::uint32_t layers, std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t window) {
  format::CacheGroup group;
  group.layers.resize(layers);
  std::iota(group.layers.begin(), group.layers.end(), 0u);
  group.kv_heads = kv_heads;
  group.head_dim = head_dim;
  group.window = window;
  return group;
}

// Block bytes 96 KiB and 480 KiB: one divides the other.
inline NamedGeometry gemma_3_270m() {
  return {"gemma-3-270m", "18 layers, 1 KV head of 256; every 6th full, else window 512",
          {{hybrid_group(3, 1, 256, 0), hybrid_group(15, 1, 256, 512)}}};
}
// Block bytes 2.5 and 13 MiB: neither divides the other.
inline NamedGeometry gemma_3_27b() {
  return {"gemma-3-27b", "62 layers, 16 KV heads of 128; every 6th full, else window 1024",
          {{hybrid_group(10, 16, 128, 0), hybrid_group(52, 16, 128, 1024)}}};
}
// Two groups of equal blocks.
inline NamedGeometry gpt_oss() {
  return {"gpt-oss", "36 layers, 8 KV heads of 64; every 2nd full, else window 128",
          {{hybrid_group(18, 8, 64, 0), hybrid_group(18, 8, 64, 128)}}};
}
// Block bytes 640, 1408 and 1248 KiB, which have little in common: superpages are large and their slices many.
inline NamedGeometry three_groups() {
  return {"three groups", "10 layers full and 22 of window 4096, 4 KV heads of 128; 13 of window 128, 8 KV heads of 96",
          {{hybrid_group(10, 4, 128, 0), hybrid_group(22, 4, 128, 4096), hybrid_group(13, 8, 96, 128)}}};
}

}  // namespace kvasir::test
