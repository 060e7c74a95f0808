// A model's shape, as its file tells it: what the planner, the cache and the forward pass all start from.
// Thread rule: a value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/result.hpp"
#include "format/block_layout.hpp"

namespace kvasir::artifact {

enum class RopePairing { none, interleaved, halves };   // (2i, 2i+1), or (i, i + rope_dim/2)

// The pairing of an architecture as GGUF files store it: converters permute Q and K of some (llama) to interleaved
// pairs. none: no rotary positions, or an architecture that is not in the table.
RopePairing rope_pairing(std::string_view architecture);

// Position scaling. linear: positions / factor. llama3: factors per frequency are in the file's rope_freqs.weight tensor.
// yarn: slow frequencies divided by the factor, fast ones kept, a ramp between. longrope: two sets of factors in the tensors
// rope_factors_long.weight and rope_factors_short.weight, for contexts beyond the original one and for those within it.
enum class RopeScaling { none, linear, llama3, yarn, longrope };

std::string_view to_string(RopePairing pairing);
std::string_view to_string(RopeScaling scaling);

struct Rope {
  RopePairing pairing = RopePairing::none;
  std::uint32_t dim = 0;        // rotated elements of a head
  double base = 10'000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  std::uint32_t original_context = 0;   // 0 = not given
  std::optional<double> attention_factor = {};   // on cosines and sines; yarn without it: 1 + ln(factor) / 10
  double beta_fast = 32;        // yarn: turns within the original context from which on a frequency is kept
  double beta_slow = 1;         // yarn: turns up to which it is divided
  bool whole_pairs = true;      // yarn: the ramp's ends are rounded outwards to pairs
  bool operator==(const Rope&) const = default;
};

// Which rope turns queries and keys of a layer: that of all history, that of layers with a window, or none.
enum class LayerRope : std::uint8_t { full, window, none };

struct ModelGeometry {
  std::string architecture;     // "llama", "qwen2", "qwen3", "gemma3" ...
  std::string name;             // general.name, may be empty
  std::uint32_t layers = 0;
  std::uint32_t width = 0;      // embedding length
  std::uint32_t heads = 0;      // query heads
  std::vector<std::uint32_t> kv_heads;   // one a layer; 0 for a layer without attention
  std::uint32_t head_dim = 0;            // K and V rows have the same width in every architecture offered here
  std::uint32_t feed_forward = 0;        // of the widest layer; 0 if the file gives none (some mixtures of experts)
  std::uint32_t vocabulary = 0;          // rows of the embedding table (may exceed the tokens), else the tokens
  std::uint32_t context = 0;    // trained context length, tokens
  double norm_epsilon = 1e-5;
  Rope rope;
  Rope window_rope;             // of layers with a window; the same where the architecture has no second one
  std::vector<LayerRope> layer_rope;     // one a layer
  std::uint32_t window = 0;     // sliding window in tokens, as the file gives it; 0 = none
  bool window_layers_known = true;       // false: neither file nor architecture says which layers have it, so none is taken to
  std::vector<format::Reach> reach;      // one a layer; a window as long as the context is all of history
  double embedding_scale = 1;   // of the embedding's rows
  double residual_scale = 1;    // of what attention and feed-forward add
  double attention_scale = 0;   // of scores; 0: 1 / sqrt(head_dim)
  double logit_scale = 1;       // logits are divided by it
  bool tied_head = false;       // the head is the embedding table; false if the file has no tensors
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;   // sum of tensor bytes in the file

  // Reads any architecture's common keys (inspect and plan need them for models whose forward pass is not offered).
  // KV heads: a scalar for all layers or an array with one entry a layer; absent means as many as query heads.
  // Errors: bad_input naming key and value: heads not divisible by KV heads, zero sizes, no layer with KV heads, arrays
  // of the wrong length, a vocabulary larger than the embedding table; unsupported: K and V rows of different width,
  // query heads that differ by layer, an unknown kind of rope scaling.
  static Result<ModelGeometry> from_gguf(const GgufFile& file);

  // The cache groups of this model in a format: one for each pair of a number of KV heads and a reach that occurs, in order
  // of first layer; layers without KV heads store nothing.
  format::KvGeometry kv_geometry(format::KvFormat format, std::uint32_t block_tokens) const;
};

}  // namespace kvasir::artifact
