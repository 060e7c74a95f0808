#include "artifact/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "artifact/gguf_keys.hpp"
#include "artifact/gguf_rope.hpp"
#include "artifact/gguf_window.hpp"
#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

class GeometryReader {
 public:
  explicit GeometryReader(const GgufFile& file) : file_(file), keys_(file, {}) {}

  Result<ModelGeometry> read() {
    KV_TRY(read_names());
    KV_TRY(read_sizes());
    KV_TRY(read_heads());
    KV_TRY(read_kv_heads());
    KV_TRY(read_vocabulary());
    KV_TRY(read_rope());
    KV_TRY(read_window());
    KV_TRY(read_scales());
    add_up_tensors();
    return std::move(geometry_);
  }

 private:
  std::string key(std::string_view suffix) const { return keys_.key(suffix); }
  bool has(std::string_view suffix) const { return keys_.has(suffix); }
  Error bad(std::string_view suffix, std::string_view what) const { return keys_.bad(suffix, what); }

  Status read_names() {
    KV_ASSIGN(const auto architecture, file_.get_string("general.architecture"));
    if (architecture.empty())
      return Error{ErrorCode::bad_input, fmt::format("{}: metadata key 'general.architecture' is empty; a name such as "
                                                     "'llama' is valid",
                                                     file_.name())};
    geometry_.architecture = architecture;
    keys_ = GgufKeys(file_, architecture);
    if (file_.find("general.name") == nullptr) return ok_status();
    KV_ASSIGN(geometry_.name, file_.get_string("general.name"));
    return ok_status();
  }

  Status read_sizes() {
    KV_ASSIGN(geometry_.layers, keys_.uint_between("block_count", 1, kMaxLayers));
    KV_ASSIGN(geometry_.width, keys_.uint_between("embedding_length", 1, kMaxWidth));
    KV_ASSIGN(geometry_.context, keys_.uint_between("context_length", 1, kMaxTokens));
    if (has("feed_forward_length")) {
      KV_ASSIGN(const auto widths, keys_.by_layer("feed_forward_length", geometry_.layers, kMaxWidth));
      geometry_.feed_forward = *std::max_element(widths.begin(), widths.end());
      if (geometry_.feed_forward == 0) return bad("feed_forward_length", fmt::format("is 0; valid are 1 to {}", kMaxWidth));
    }
    const bool rms = has("attention.layer_norm_rms_epsilon");
    KV_ASSIGN(geometry_.norm_epsilon,
              keys_.positive(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", geometry_.norm_epsilon));
    return ok_status();
  }

  Status read_heads() {
    KV_ASSIGN(const auto heads, keys_.by_layer("attention.head_count", geometry_.layers, kMaxHeads));
    geometry_.heads = *std::max_element(heads.begin(), heads.end());
    if (geometry_.heads == 0) return bad("attention.head_count", fmt::format("is 0; valid are 1 to {}", kMaxHeads));
    for (std::size_t layer = 0; layer < heads.size(); ++layer)
      if (heads[layer] != geometry_.heads)
        return keys_.error(ErrorCode::unsupported, "attention.head_count",
                           fmt::format("is {} for layer {} and {} for another; only one number for all layers is offered",
                                       heads[layer], layer, geometry_.heads));
    return read_head_dim();
  }

  Status read_head_dim() {
    if (has("attention.key_length")) {
      KV_ASSIGN(geometry_.head_dim, keys_.uint_between("attention.key_length", 1, kMaxHeadDim));
    } else {
      if (geometry_.width % geometry_.heads != 0)
        return bad("embedding_length", fmt::format("is {}, which {} heads do not divide; give '{}' or a multiple",
                                                   geometry_.width, geometry_.heads, key("attention.key_length")));
      geometry_.head_dim = geometry_.width / geometry_.heads;
      if (geometry_.head_dim > kMaxHeadDim)
        return bad("embedding_length", fmt::format("is {} for {} heads; a head has at most {} elements", geometry_.width,
                                                   geometry_.heads, kMaxHeadDim));
    }
    if (!has("attention.value_length")) return ok_status();
    KV_ASSIGN(const auto value_length, keys_.uint_between("attention.value_length", 1, kMaxHeadDim));
    if (value_length == geometry_.head_dim) return ok_status();
    return keys_.error(ErrorCode::unsupported, "attention.value_length",
                       fmt::format("is {}, but a key has {} elements; only equal lengths are offered", value_length,
                                   geometry_.head_dim));
  }

  Status read_kv_heads() {
    constexpr std::string_view kKey = "attention.head_count_kv";
    if (!has(kKey)) {
      geometry_.kv_heads.assign(geometry_.layers, geometry_.heads);
      return ok_status();
    }
    KV_ASSIGN(geometry_.kv_heads, keys_.by_layer(kKey, geometry_.layers, kMaxHeads));
    bool any = false;
    for (std::size_t layer = 0; layer < geometry_.kv_heads.size(); ++layer) {
      const std::uint32_t kv_heads = geometry_.kv_heads[layer];
      if (kv_heads == 0) continue;
      any = true;
      if (geometry_.heads % kv_heads != 0)
        return bad(kKey, fmt::format("is {} for layer {}, which does not divide {} query heads; a divisor is valid", kv_heads,
                                     layer, geometry_.heads));
    }
    if (!any) return bad(kKey, "is 0 for every layer; at least one layer has KV heads");
    return ok_status();
  }

  Result<std::optional<std::uint64_t>> token_count() const {
    constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
    if (file_.find(kTokens) != nullptr) {
      KV_ASSIGN(const auto tokens, file_.get_strings(kTokens));
      return std::optional<std::uint64_t>(tokens.size());
    }
    if (!has("vocab_size")) return std::optional<std::uint64_t>();
    KV_ASSIGN(const auto count, keys_.uint_between("vocab_size", 1, kMaxTokens));
    return std::optional<std::uint64_t>(count);
  }

  Status read_vocabulary() {
    const auto bad_file = [this](std::string_view what) {
      return Error{ErrorCode::bad_input, fmt::format("{}: {}", file_.name(), what)};
    };
    KV_ASSIGN(const auto tokens, token_count());
    const GgufTensor* embedding = file_.find_tensor("token_embd.weight");
    if (!tokens && embedding == nullptr)
      return bad_file("no vocabulary: metadata key 'tokenizer.ggml.tokens' or tensor 'token_embd.weight' is needed");
    std::uint64_t vocabulary = tokens.value_or(0);
    if (embedding != nullptr) {
      if (embedding->dims.size() != 2 || embedding->dims[0] != geometry_.width)
        return bad_file(fmt::format("tensor 'token_embd.weight' is [{}]; [{}, vocabulary] is valid",
                                    fmt::join(embedding->dims, ", "), geometry_.width));
      vocabulary = embedding->dims[1];
      if (tokens && *tokens > vocabulary)
        return bad_file(fmt::format("{} tokens, but tensor 'token_embd.weight' has only {} rows", *tokens, vocabulary));
    }
    if (vocabulary == 0 || vocabulary > kMaxTokens)
      return bad_file(fmt::format("a vocabulary of {} tokens; valid are 1 to {}", vocabulary, kMaxTokens));
    geometry_.vocabulary = static_cast<std::uint32_t>(vocabulary);
    return ok_status();
  }

  Status read_rope() {
    KV_ASSIGN(geometry_.rope, artifact::read_rope(keys_, geometry_.head_dim));
    KV_ASSIGN(geometry_.window_rope, read_window_rope(keys_, geometry_.rope));
    return ok_status();
  }

  Status read_window() {
    if (has("attention.sliding_window")) {
      KV_ASSIGN(geometry_.window, keys_.uint_between("attention.sliding_window", 0, kMaxTokens));
    }
    std::optional<std::vector<bool>> windowed;
    if (geometry_.window != 0) {
      KV_ASSIGN(windowed, window_layers(keys_, geometry_.layers));
      geometry_.window_layers_known = windowed.has_value();
    }
    geometry_.reach.resize(geometry_.layers);
    geometry_.layer_rope.assign(geometry_.layers, LayerRope::full);
    for (std::uint32_t layer = 0; layer < geometry_.layers; ++layer) {
      if (windowed && (*windowed)[layer]) {
        geometry_.layer_rope[layer] = LayerRope::window;   // the window's rope even where the window is as long as the context
        if (geometry_.window < geometry_.context) geometry_.reach[layer].window = geometry_.window;
      }
      if (!layer_rotates(geometry_.architecture, layer)) geometry_.layer_rope[layer] = LayerRope::none;
    }
    return ok_status();
  }

  // Granite's are in its files; Gemma's follow from the sizes.
  Status read_scales() {
    if (geometry_.architecture == "granite") {
      KV_ASSIGN(geometry_.embedding_scale, keys_.positive("embedding_scale", 1));
      KV_ASSIGN(geometry_.residual_scale, keys_.positive("residual_scale", 1));
      KV_ASSIGN(geometry_.attention_scale, keys_.positive("attention.scale", 0));
      KV_ASSIGN(geometry_.logit_scale, keys_.positive("logit_scale", 1));
    }
    if (geometry_.architecture == "gemma3") {
      const double width = geometry_.width;
      geometry_.embedding_scale = std::sqrt(width);
      // The 27B model alone, of 62 layers, scales scores by the width over the heads.
      if (geometry_.layers == 62) geometry_.attention_scale = 1 / std::sqrt(width / geometry_.heads);
    }
    return ok_status();
  }

  void add_up_tensors() {
    for (const GgufTensor& tensor : file_.tensors()) {
      std::uint64_t elements = 1;
      for (const std::uint64_t dim : tensor.dims) elements *= dim;  // checked when the header was read
      geometry_.parameters += elements;
      geometry_.weight_bytes += tensor.bytes.size();
    }
    geometry_.tied_head = file_.find_tensor("token_embd.weight") != nullptr && file_.find_tensor("output.weight") == nullptr;
  }

  const GgufFile& file_;
  GgufKeys keys_;
  ModelGeometry geometry_;
};

}  // namespace

Result<ModelGeometry> ModelGeometry::from_gguf(const GgufFile& file) { return GeometryReader(file).read(); }

format::KvGeometry ModelGeometry::kv_geometry(format::KvFormat format, std::uint32_t block_tokens) const {
  format::KvGeometry geometry;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    if (kv_heads[layer] == 0) continue;
    auto group = std::find_if(geometry.groups.begin(), geometry.groups.end(),
                              [&](const format::CacheGroup& g) { return g.kv_heads == kv_heads[layer] && g.reach() == reach[layer]; });
    if (group == geometry.groups.end()) {
      geometry.groups.push_back({.layers = {}, .kv_heads = kv_heads[layer], .head_dim = head_dim, .format = format,
                                 .window = reach[layer].window, .block_tokens = block_tokens, .chunked = reach[layer].chunked});
      group = geometry.groups.end() - 1;
    }
    group->layers.push_back(layer);
  }
  return geometry;
}

}  // namespace kvasir::artifact
