// Tiny random models as GGUF files: any geometry, any tensor type, seeded, made in milliseconds. Equal specs give equal
// bytes on every machine. Weights have deviation 1/sqrt(fan-in) and norms are near one, so logits are of order one.
// The vocabulary is a valid byte-level BPE one (256 bytes, a few merges, three specials), so any text tokenizes.
// Thread rule: pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "artifact/gguf.hpp"
#include "artifact/tensor_type.hpp"

namespace kvasir::test {

struct TinyModelSpec {
  // "llama", "qwen2" (QKV biases), "qwen3" (Q and K norms), "gemma3" (those, norms before and after, GELU, a rope of its own in
  // window layers) or "gpt-oss" (biases and attention sinks, no experts)
  std::string architecture = "llama";
  std::uint32_t layers = 2;
  std::uint32_t width = 64;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 4;
  std::uint32_t head_dim = 16;
  std::uint32_t feed_forward = 96;
  std::uint32_t vocabulary = 288;      // at least kTinyVocabularyMin; what merges do not fill is unused tokens
  std::uint32_t context = 2048;
  bool tied_head = false;
  double norm_epsilon = 1e-5;
  double rope_base = 10'000;
  bool rope_factors = false;           // the rope_freqs.weight tensor of Llama 3
  std::uint32_t window = 0;            // attention.sliding_window; 0: the key is left out
  std::uint32_t window_period = 0;     // attention.sliding_window_pattern; 0: left to the architecture
  std::vector<std::uint32_t> kv_heads_by_layer = {};   // instead of kv_heads, one a layer
  // Rows must be whole blocks: width for all but attn_output (heads * head_dim) and ffn_down (feed_forward).
  artifact::TensorType embedding = artifact::TensorType::q8_0;
  artifact::TensorType attention = artifact::TensorType::q4_1;     // attn_q, attn_k, attn_v, attn_output
  artifact::TensorType feed_forward_type = artifact::TensorType::q4_1;  // ffn_gate, ffn_up, ffn_down
  artifact::TensorType head = artifact::TensorType::q8_0;          // if not tied
  std::uint64_t seed = 1;
  std::string without;                 // a tensor that is left out: the file is broken
  std::string extra;                   // a tensor (a vector of `width`) that the architecture does not have

  static TinyModelSpec mha();       // 4 query heads, 4 KV heads
  static TinyModelSpec gqa();       // 4 query heads, 2 KV heads, three layers, tied head
  static TinyModelSpec mqa();       // 4 query heads, 1 KV head of another width than width / heads
  // Layers with a window of 40 tokens, and every third with all of history: two cache groups, two ropes.
  static TinyModelSpec window_and_full();
  // A window of 24 tokens in every layer: one group that gives back what it has left behind.
  static TinyModelSpec window_only();
  // Attention sinks, biases, and a window of 20 tokens in every second layer.
  static TinyModelSpec sinks();
  // Layers of 4, 1, 4 and 2 KV heads, those of every second layer with a window of 40: three groups of unlike blocks.
  static TinyModelSpec mixed_heads();
  // gqa() with 256-element rows, so that K-quants fit.
  static TinyModelSpec k_quants(artifact::TensorType type);
};

// Token ids: specials first, then the bytes in byte-level BPE order, then merges, then unused ones.
inline constexpr std::uint32_t kTinyEndOfText = 0;
inline constexpr std::uint32_t kTinyImStart = 1;
inline constexpr std::uint32_t kTinyImEnd = 2;
inline constexpr std::uint32_t kTinyVocabularyMin = 3 + 256;

// A file's bytes and the file read from them.
struct TinyModel {
  std::vector<std::byte> bytes;
  artifact::GgufFile file;
};

// REQUIRES: a consistent spec (checked).
std::vector<std::byte> tiny_model_bytes(const TinyModelSpec& spec);
TinyModel make_tiny_model(const TinyModelSpec& spec);
// Overwrites `path`.
void write_tiny_model(const TinyModelSpec& spec, const std::string& path);

}  // namespace kvasir::test
