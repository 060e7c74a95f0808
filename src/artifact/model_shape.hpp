// The shape of any language model as far as its memory and work depend on it: what the planner starts from. Wider than
// ModelGeometry, which describes what the engine runs: latents, recurrent states, experts, K and V of different width.
// Thread rule: a value; any thread.
// Invariants, of every shape a reader here returns (check_shape): 1 to kMaxLayers layers, every size within the limits
// below, KV heads of a layer divide the query heads, at least one layer keeps something.
//
// Sources: a Hugging Face config.json (config_json.hpp), a GGUF header (gguf_shape.hpp), or the table of known models
// (known_models.hpp). shape_override.hpp changes single fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kvasir::artifact {

// The largest sizes taken for true: above any model there is, low enough that a row, a state and a matrix of one layer fit
// 64 bits and that one entry a layer is a small allocation. Sums over layers and experts are checked where they are made.
namespace shape_limits {
inline constexpr std::uint32_t kMaxLayers = 1u << 16;
inline constexpr std::uint32_t kMaxHeads = 1u << 16;
inline constexpr std::uint32_t kMaxHeadDim = 1u << 16;
inline constexpr std::uint32_t kMaxWidth = 1u << 24;
inline constexpr std::uint32_t kMaxTokens = (1u << 31) - 1;  // token ids and positions are int32
inline constexpr std::uint32_t kMaxExperts = 1u << 16;
inline constexpr std::uint64_t kMaxParameters = 1ull << 53;
inline constexpr double kMaxWeightBits = 64;
}  // namespace shape_limits

// What a layer keeps of the past.
enum class Memory : std::uint8_t {
  attention,  // K and V rows of its KV heads
  latent,     // one row a token, K and V at once (MLA)
  recurrent,  // a state of fixed size a sequence
  none,       // nothing: a block of feed-forward or experts alone, or one that reads another layer's rows
};

struct LayerShape {
  Memory memory = Memory::attention;
  std::uint32_t kv_heads = 0;        // latent: 1
  std::uint32_t k_dim = 0;           // elements of a K row of one head; latent: the latent and its rope part
  std::uint32_t v_dim = 0;           // elements of a V row of one head; latent: 0
  std::uint32_t index_dim = 0;       // elements of a row of an index that selects tokens (sparse attention), beside K and V
  std::uint32_t window = 0;          // tokens kept, the current one included; 0 = all
  bool chunked = false;              // the window is a chunk at absolute positions
  std::uint32_t merged = 1;          // tokens that one stored row stands for
  std::uint32_t recent = 0;          // merged rows: tokens, the current one included, kept in a row each besides
  std::uint64_t state_elements = 0;  // recurrent: of a sequence, at state_bytes each
  std::uint32_t state_bytes = 2;
  std::uint32_t feed_forward = 0;    // width of a dense feed-forward block; 0 = none or unknown
  std::uint32_t experts = 0, shared_experts = 0, expert_width = 0;
  // Weights of the layer's mixer that the fields above do not imply: all of a recurrent mixer's; an output gate's, an
  // indexer's. 0 = none or unknown.
  std::uint64_t mixer_parameters = 0;
  bool operator==(const LayerShape&) const = default;
};

struct ModelShape {
  std::string name;              // for people
  std::string family;            // "llama", "deepseek_v3" ...: model_type of a config, architecture of a GGUF
  std::uint32_t width = 0;       // hidden size
  std::uint32_t heads = 0;       // query heads; 0 = no layer has attention
  std::uint32_t query_rank = 0;  // MLA: of the query's latent; 0 = none
  std::uint32_t nope_dim = 0, rope_dim = 0, value_dim = 0;   // MLA: of an expanded head; all 0 = rows are used as they are
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;     // longest position trained for, tokens
  std::uint32_t experts_per_token = 0;
  bool gated = true;             // feed-forward of three matrices instead of two
  bool tied_head = false;
  std::vector<LayerShape> layers;
  std::uint64_t other_parameters = 0;   // outside layers, embedding and head: learned positions, embeddings a layer
  std::uint64_t parameters = 0;         // as published or counted; 0 = unknown
  std::uint64_t active_parameters = 0;  // of one token; 0 = unknown or all
  double weight_bits = 16;              // of a weight as the source stores it
  // Which field of the source said what: "layers" -> "num_hidden_layers", "kv_heads" -> "num_key_value_heads" ...
  std::map<std::string, std::string, std::less<>> said_by;
  std::vector<std::string> unverified;  // fields whose source was not read (known models)
  bool operator==(const ModelShape&) const = default;
};

// The invariants above. Errors: bad_input naming the layer, the value and what would be valid. `source` opens the message.
Status check_shape(const ModelShape& shape, std::string_view source);

}  // namespace kvasir::artifact
