// A model's shape, as its file tells it: what the planner, the cache and the forward pass all start from.
// Thread rule: a value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/result.hpp"
#include "format/block_layout.hpp"

namespace kvasir::artifact {

enum class RopePairing { none, interleaved, halves };   // (2i, 2i+1), or (i, i + rope_dim/2)

// Position scaling of Llama 3: factors per frequency are in the file's rope_freqs.weight tensor; linear: positions / factor.
enum class RopeScaling { none, linear, llama3, yarn };

struct Rope {
  RopePairing pairing = RopePairing::none;
  std::uint32_t dim = 0;        // rotated elements of a head
  double base = 10'000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  std::uint32_t original_context = 0;   // 0 = not given
};

struct ModelGeometry {
  std::string architecture;     // "llama", "qwen2", "qwen3", "gemma3" ...
  std::string name;             // general.name, may be empty
  std::uint32_t layers = 0;
  std::uint32_t width = 0;      // embedding length
  std::uint32_t heads = 0;      // query heads
  std::vector<std::uint32_t> kv_heads;   // one a layer
  std::uint32_t head_dim = 0;            // K and V rows have the same width in every architecture offered here
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;    // trained context length, tokens
  double norm_epsilon = 1e-5;
  Rope rope;
  std::uint32_t window = 0;     // sliding window in tokens, 0 = none
  bool tied_head = false;       // the head is the embedding table
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;   // sum of tensor bytes in the file

  // Reads any architecture's common keys (inspect and plan need them for models whose forward pass is not offered).
  // Errors: bad_input naming key and value: heads not divisible by KV heads, zero sizes, arrays of the wrong length.
  static Result<ModelGeometry> from_gguf(const GgufFile& file);

  // The cache groups of this model in a format: one full-history group for the architectures offered today.
  format::KvGeometry kv_geometry(format::KvFormat format, std::uint32_t block_tokens) const;
};

}  // namespace kvasir::artifact
