#include "artifact/gguf_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/config_family.hpp"
#include "artifact/gguf_keys.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

// Architectures whose layers have linear attention but every n-th, without saying so layer by layer.
constexpr std::string_view kLinearByPeriod[] = {"qwen3next", "qwen35", "qwen35moe"};

class GgufShapeReader {
 public:
  explicit GgufShapeReader(const GgufFile& file) : file_(file), keys_(file, {}) {}

  Result<ModelShape> from_geometry(const ModelGeometry& geometry) {
    start(geometry.architecture, geometry.name);
    shape_.width = geometry.width;
    shape_.heads = geometry.heads;
    shape_.vocabulary = geometry.vocabulary;
    shape_.context = geometry.context;
    shape_.tied_head = geometry.tied_head;
    shape_.layers.resize(geometry.layers);
    for (std::size_t at = 0; at < geometry.layers; ++at) {
      LayerShape& layer = shape_.layers[at];
      layer.kv_heads = geometry.kv_heads[at];
      layer.k_dim = layer.v_dim = geometry.head_dim;
      if (layer.kv_heads == 0) layer = LayerShape{.memory = Memory::none};
    }
    said({{"kv_heads", "attention.head_count_kv"}, {"k_dim", "attention.key_length"}, {"v_dim", "attention.value_length"}});
    KV_TRY(read_feed_forward());
    KV_TRY(read_states());
    apply_window(geometry);
    return finish(geometry.parameters, geometry.weight_bytes);
  }

  Result<ModelShape> from_metadata() {
    KV_ASSIGN(const auto architecture, file_.get_string("general.architecture"));
    std::string_view name;
    if (file_.find("general.name") != nullptr) {
      KV_ASSIGN(name, file_.get_string("general.name"));
    }
    start(architecture, name);
    KV_ASSIGN(const auto layers, whole("block_count", 1, kMaxLayers));
    shape_.layers.resize(layers);
    KV_ASSIGN(shape_.width, whole("embedding_length", 1, kMaxWidth));
    KV_ASSIGN(shape_.heads, whole("attention.head_count", 1, kMaxHeads));
    KV_ASSIGN(shape_.context, whole("context_length", 1, kMaxTokens));
    KV_TRY(read_vocabulary());
    KV_TRY(read_latent());
    KV_TRY(read_feed_forward());
    std::uint64_t parameters = 0, bytes = 0;
    for (const GgufTensor& tensor : file_.tensors()) {
      std::uint64_t elements = 1;
      for (const std::uint64_t dim : tensor.dims) elements *= dim;  // checked when the header was read
      parameters += elements;
      bytes += tensor.bytes.size();
    }
    shape_.tied_head = file_.find_tensor("token_embd.weight") != nullptr && file_.find_tensor("output.weight") == nullptr;
    return finish(parameters, bytes);
  }

 private:
  std::string key(std::string_view suffix) const { return keys_.key(suffix); }
  bool has(std::string_view suffix) const { return keys_.has(suffix); }
  Error bad(std::string_view suffix, std::string_view what) const { return keys_.bad(suffix, what); }
  Result<std::uint32_t> whole(std::string_view suffix, std::uint32_t least, std::uint32_t most) const {
    return keys_.uint_between(suffix, least, most);
  }

  Result<std::uint32_t> whole_or(std::string_view suffix, std::uint32_t least, std::uint32_t most,
                                 std::uint32_t fallback) const {
    if (!has(suffix)) return fallback;
    return whole(suffix, least, most);
  }

  void start(std::string_view architecture, std::string_view name) {
    shape_.family = architecture;
    keys_ = GgufKeys(file_, architecture);
    shape_.name = name.empty() ? std::string(file_.name()) : std::string(name);
    shape_.gated = gated(architecture);
    said({{"layers", "block_count"}, {"width", "embedding_length"}, {"heads", "attention.head_count"},
          {"context", "context_length"}});
  }

  // GGUF writes some families without the underscore of their model_type.
  static bool gated(std::string_view architecture) {
    if (architecture == "gptneox" || architecture == "starcoder" || architecture == "phi2") return false;
    return family_of(architecture).gated;
  }

  void said(std::initializer_list<std::pair<std::string_view, std::string_view>> keys) {
    for (const auto& [name, suffix] : keys)
      if (has(suffix)) shape_.said_by[std::string(name)] = key(suffix);
  }

  Status read_vocabulary() {
    const GgufTensor* embedding = file_.find_tensor("token_embd.weight");
    if (embedding != nullptr && embedding->dims.size() == 2 && embedding->dims[1] <= kMaxTokens) {
      shape_.vocabulary = static_cast<std::uint32_t>(embedding->dims[1]);
      return ok_status();
    }
    if (has("vocab_size")) {
      KV_ASSIGN(shape_.vocabulary, whole("vocab_size", 1, kMaxTokens));
      return ok_status();
    }
    KV_ASSIGN(const auto tokens, file_.get_strings("tokenizer.ggml.tokens"));
    shape_.vocabulary = static_cast<std::uint32_t>(tokens.size());  // an array has at most kMaxArrayElements
    return ok_status();
  }

  // Newer files give the expanded head in key_length_mla and value_length_mla and the row in key_length; older ones give the
  // expanded head in key_length and value_length.
  Status read_latent() {
    KV_ASSIGN(const auto rank, whole("attention.kv_lora_rank", 1, kMaxHeadDim));
    KV_ASSIGN(shape_.rope_dim, whole("rope.dimension_count", 1, kMaxHeadDim));
    const bool newer = has("attention.key_length_mla");
    const std::string_view k_key = newer ? "attention.key_length_mla" : "attention.key_length";
    const std::string_view v_key = newer ? "attention.value_length_mla" : "attention.value_length";
    KV_ASSIGN(const auto k_dim, whole(k_key, shape_.rope_dim, kMaxHeadDim));
    KV_ASSIGN(shape_.value_dim, whole(v_key, 1, kMaxHeadDim));
    KV_ASSIGN(shape_.query_rank, whole_or("attention.q_lora_rank", 0, kMaxWidth, 0));
    KV_ASSIGN(const auto index_dim, whole_or("attention.indexer.key_length", 1, kMaxHeadDim, 0));
    shape_.nope_dim = k_dim - shape_.rope_dim;
    if (rank + shape_.rope_dim > kMaxHeadDim)
      return bad("attention.kv_lora_rank", fmt::format("is {}; valid are 1 to {}", rank, kMaxHeadDim - shape_.rope_dim));
    for (LayerShape& layer : shape_.layers) {
      layer.memory = Memory::latent;
      layer.kv_heads = 1;
      layer.k_dim = rank + shape_.rope_dim;
      layer.index_dim = index_dim;
    }
    said({{"k_dim", "attention.kv_lora_rank"}, {"value_dim", v_key}, {"query_rank", "attention.q_lora_rank"}});
    return ok_status();
  }

  Status read_feed_forward() {
    const auto layers = shape_.layers.size();
    std::vector<std::uint32_t> dense(layers, 0);
    if (has("feed_forward_length")) {
      KV_ASSIGN(dense, keys_.by_layer("feed_forward_length", static_cast<std::uint32_t>(layers), kMaxWidth));
    }
    KV_ASSIGN(const auto experts, whole_or("expert_count", 0, kMaxExperts, 0));
    KV_ASSIGN(const auto first, whole_or("leading_dense_block_count", 0, kMaxLayers, 0));
    KV_ASSIGN(const auto period, whole_or("interleave_moe_layer_step", 1, kMaxLayers, 1));
    LayerShape sparse{.experts = experts};
    if (experts > 1) KV_TRY(read_experts(dense.back(), sparse));
    for (std::size_t at = 0; at < layers; ++at) {
      LayerShape& layer = shape_.layers[at];
      if (blocks_stand_alone() && dense[at] == 0) continue;
      if (experts > 1 && at >= first && (at + 1) % period == 0) {
        layer.experts = experts;
        layer.shared_experts = sparse.shared_experts;
        layer.expert_width = sparse.expert_width;
      } else {
        layer.feed_forward = dense[at];
      }
    }
    said({{"feed_forward", "feed_forward_length"}, {"experts", "expert_count"},
          {"experts_per_token", "expert_used_count"}, {"expert_width", "expert_feed_forward_length"},
          {"shared_experts", "expert_shared_count"}});
    return ok_status();
  }

  // Nemotron-H: a block with a feed-forward has no mixer, and the other way round.
  bool blocks_stand_alone() const { return shape_.family.starts_with("nemotron_h"); }

  // Mixtral's files give the width of an expert as that of the feed-forward.
  Status read_experts(std::uint32_t dense_width, LayerShape& layer) {
    KV_ASSIGN(layer.expert_width, whole_or("expert_feed_forward_length", 1, kMaxWidth, dense_width));
    if (layer.expert_width == 0) return bad("expert_feed_forward_length", "is missing; a width is valid");
    KV_ASSIGN(shape_.experts_per_token, whole_or("expert_used_count", 1, layer.experts, 0));
    KV_ASSIGN(const auto shared_width, whole_or("expert_shared_feed_forward_length", 0, kMaxWidth, 0));
    KV_ASSIGN(layer.shared_experts,
              whole_or("expert_shared_count", 0, kMaxExperts, (shared_width + layer.expert_width - 1) / layer.expert_width));
    return ok_status();
  }

  bool is_linear_by_period() const {
    return std::find(std::begin(kLinearByPeriod), std::end(kLinearByPeriod), shape_.family) != std::end(kLinearByPeriod);
  }

  // States, in float32 as the files' engines keep them: inner x state, and the inputs of the convolution.
  Status read_states() {
    if (!has("ssm.inner_size")) return ok_status();
    KV_ASSIGN(const std::uint64_t inner, whole("ssm.inner_size", 1, kMaxWidth));
    KV_ASSIGN(const std::uint64_t state, whole("ssm.state_size", 1, kMaxHeadDim));
    KV_ASSIGN(const std::uint64_t kernel, whole("ssm.conv_kernel", 1, 1u << 10));
    KV_ASSIGN(const std::uint64_t groups, whole_or("ssm.group_count", 0, kMaxHeads, 0));
    KV_ASSIGN(const auto period, whole_or("full_attention_interval", 1, kMaxLayers, 4));
    for (std::size_t at = 0; at < shape_.layers.size(); ++at) {
      LayerShape& layer = shape_.layers[at];
      const bool linear = is_linear_by_period() && (at + 1) % period != 0;
      const bool mixer_free = blocks_stand_alone() && layer.feed_forward + layer.experts != 0;
      if (!linear && (layer.memory != Memory::none || mixer_free)) continue;
      layer.memory = Memory::recurrent;
      layer.kv_heads = layer.k_dim = layer.v_dim = 0;
      layer.state_elements = inner * state + (inner + 2 * groups * state) * (kernel - 1);
      layer.state_bytes = 4;
    }
    said({{"state", "ssm.inner_size"}});
    return ok_status();
  }

  void apply_window(const ModelGeometry& geometry) {
    bool any = false;
    for (std::size_t at = 0; at < shape_.layers.size(); ++at) {
      LayerShape& layer = shape_.layers[at];
      if (layer.memory != Memory::attention || geometry.reach[at].window == 0) continue;
      layer.window = geometry.reach[at].window;
      layer.chunked = geometry.reach[at].chunked;
      any = true;
    }
    if (any) said({{"window", "attention.sliding_window"}});
  }

  Result<ModelShape> finish(std::uint64_t parameters, std::uint64_t bytes) {
    shape_.parameters = parameters;
    if (parameters != 0) {
      shape_.weight_bits = 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters);
      shape_.said_by["parameters"] = shape_.said_by["weight_bits"] = "tensors";
    }
    KV_TRY(check_shape(shape_, file_.name()));
    return std::move(shape_);
  }

  const GgufFile& file_;
  GgufKeys keys_;   // of the architecture, once it is known
  ModelShape shape_;
};

}  // namespace

Result<ModelShape> shape_of(const GgufFile& file, const ModelGeometry& geometry) {
  return GgufShapeReader(file).from_geometry(geometry);
}

Result<ModelShape> shape_of(const GgufFile& file) {
  const auto architecture = file.get_string("general.architecture");
  if (architecture.ok() && file.find(fmt::format("{}.attention.kv_lora_rank", *architecture)) != nullptr)
    return GgufShapeReader(file).from_metadata();
  KV_ASSIGN(const ModelGeometry geometry, ModelGeometry::from_gguf(file));
  return shape_of(file, geometry);
}

}  // namespace kvasir::artifact
