#include "artifact/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

class GeometryReader {
 public:
  explicit GeometryReader(const GgufFile& file) : file_(file) {}

  Result<ModelGeometry> read() {
    KV_TRY(read_names());
    KV_TRY(read_sizes());
    KV_TRY(read_heads());
    KV_TRY(read_kv_heads());
    KV_TRY(read_vocabulary());
    KV_TRY(read_rope());
    add_up_tensors();
    return std::move(geometry_);
  }

 private:
  std::string key(std::string_view suffix) const { return fmt::format("{}.{}", geometry_.architecture, suffix); }
  bool has(std::string_view suffix) const { return file_.find(key(suffix)) != nullptr; }

  // "<file>: metadata key '<architecture>.<suffix>' <what>".
  Error error(ErrorCode code, std::string_view suffix, std::string_view what) const {
    return Error{code, fmt::format("{}: metadata key '{}' {}", file_.name(), key(suffix), what)};
  }
  Error bad(std::string_view suffix, std::string_view what) const { return error(ErrorCode::bad_input, suffix, what); }

  Result<std::uint32_t> uint_between(std::string_view suffix, std::uint32_t least, std::uint32_t most) const {
    KV_ASSIGN(const auto value, file_.get_uint(key(suffix)));
    if (value < least || value > most) return bad(suffix, fmt::format("is {}; valid are {} to {}", value, least, most));
    return static_cast<std::uint32_t>(value);
  }

  Result<double> positive(std::string_view suffix, double fallback) const {
    if (!has(suffix)) return fallback;
    KV_ASSIGN(const double value, file_.get_float(key(suffix)));
    if (!std::isfinite(value) || value <= 0) return bad(suffix, fmt::format("is {}; a positive number is valid", value));
    return value;
  }

  // One value a layer, from a scalar or an array with one entry a layer.
  Result<std::vector<std::uint32_t>> by_layer(std::string_view suffix, std::uint32_t most) const {
    const GgufValue* value = file_.find(key(suffix));
    if (value == nullptr || !std::holds_alternative<GgufArray>(*value)) {
      KV_ASSIGN(const auto scalar, uint_between(suffix, 0, most));
      return std::vector<std::uint32_t>(geometry_.layers, scalar);
    }
    KV_ASSIGN(const auto entries, file_.get_ints(key(suffix)));
    if (entries.size() != geometry_.layers)
      return bad(suffix, fmt::format("has {} entries; {} are valid, one a layer", entries.size(), geometry_.layers));
    std::vector<std::uint32_t> values;
    values.reserve(entries.size());
    for (std::size_t layer = 0; layer < entries.size(); ++layer) {
      if (entries[layer] < 0 || entries[layer] > std::int64_t{most})
        return bad(suffix, fmt::format("is {} for layer {}; valid are 0 to {}", entries[layer], layer, most));
      values.push_back(static_cast<std::uint32_t>(entries[layer]));
    }
    return values;
  }

  Status read_names() {
    KV_ASSIGN(const auto architecture, file_.get_string("general.architecture"));
    if (architecture.empty())
      return Error{ErrorCode::bad_input, fmt::format("{}: metadata key 'general.architecture' is empty; a name such as "
                                                     "'llama' is valid",
                                                     file_.name())};
    geometry_.architecture = architecture;
    if (file_.find("general.name") == nullptr) return ok_status();
    KV_ASSIGN(geometry_.name, file_.get_string("general.name"));
    return ok_status();
  }

  Status read_sizes() {
    KV_ASSIGN(geometry_.layers, uint_between("block_count", 1, kMaxLayers));
    KV_ASSIGN(geometry_.width, uint_between("embedding_length", 1, kMaxWidth));
    KV_ASSIGN(geometry_.context, uint_between("context_length", 1, kMaxTokens));
    if (has("feed_forward_length")) {
      KV_ASSIGN(const auto widths, by_layer("feed_forward_length", kMaxWidth));
      geometry_.feed_forward = *std::max_element(widths.begin(), widths.end());
      if (geometry_.feed_forward == 0) return bad("feed_forward_length", fmt::format("is 0; valid are 1 to {}", kMaxWidth));
    }
    const bool rms = has("attention.layer_norm_rms_epsilon");
    KV_ASSIGN(geometry_.norm_epsilon,
              positive(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", geometry_.norm_epsilon));
    if (has("attention.sliding_window")) {
      KV_ASSIGN(geometry_.window, uint_between("attention.sliding_window", 0, kMaxTokens));
    }
    return ok_status();
  }

  Status read_heads() {
    KV_ASSIGN(const auto heads, by_layer("attention.head_count", kMaxHeads));
    geometry_.heads = *std::max_element(heads.begin(), heads.end());
    if (geometry_.heads == 0) return bad("attention.head_count", fmt::format("is 0; valid are 1 to {}", kMaxHeads));
    for (std::size_t layer = 0; layer < heads.size(); ++layer)
      if (heads[layer] != geometry_.heads)
        return error(ErrorCode::unsupported, "attention.head_count",
                     fmt::format("is {} for layer {} and {} for another; only one number for all layers is offered",
                                 heads[layer], layer, geometry_.heads));
    return read_head_dim();
  }

  Status read_head_dim() {
    if (has("attention.key_length")) {
      KV_ASSIGN(geometry_.head_dim, uint_between("attention.key_length", 1, kMaxHeadDim));
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
    KV_ASSIGN(const auto value_length, uint_between("attention.value_length", 1, kMaxHeadDim));
    if (value_length == geometry_.head_dim) return ok_status();
    return error(ErrorCode::unsupported, "attention.value_length",
                 fmt::format("is {}, but a key has {} elements; only equal lengths are offered", value_length,
                             geometry_.head_dim));
  }

  Status read_kv_heads() {
    constexpr std::string_view kKey = "attention.head_count_kv";
    if (!has(kKey)) {
      geometry_.kv_heads.assign(geometry_.layers, geometry_.heads);
      return ok_status();
    }
    KV_ASSIGN(geometry_.kv_heads, by_layer(kKey, kMaxHeads));
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
    KV_ASSIGN(const auto count, uint_between("vocab_size", 1, kMaxTokens));
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
    Rope& rope = geometry_.rope;
    rope.pairing = rope_pairing(geometry_.architecture);
    rope.dim = geometry_.head_dim;
    if (has("rope.dimension_count")) {
      KV_ASSIGN(rope.dim, uint_between("rope.dimension_count", 1, geometry_.head_dim));
      if (rope.dim % 2 != 0) return bad("rope.dimension_count", fmt::format("is {}; an even number is valid", rope.dim));
    }
    if (rope.pairing != RopePairing::none && rope.dim % 2 != 0)
      return bad("attention.key_length", fmt::format("gives heads of {} elements; rotary positions need an even number", rope.dim));
    KV_ASSIGN(rope.base, positive("rope.freq_base", rope.base));
    return read_rope_scaling();
  }

  Status read_rope_scaling() {
    Rope& rope = geometry_.rope;
    KV_ASSIGN(rope.scaling, rope_scaling());
    if (has("rope.scaling.original_context_length")) {
      KV_ASSIGN(rope.original_context, uint_between("rope.scaling.original_context_length", 0, kMaxTokens));
    }
    KV_ASSIGN(rope.factor, positive(has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear", rope.factor));
    return ok_status();
  }

  // Llama 3 has no type of its own in a file: its factors are a tensor, and the type is absent or "none".
  Result<RopeScaling> rope_scaling() const {
    const bool factors = file_.find_tensor("rope_freqs.weight") != nullptr;
    const RopeScaling untyped = factors ? RopeScaling::llama3 : RopeScaling::none;
    constexpr std::string_view kKey = "rope.scaling.type";
    if (!has(kKey)) return has("rope.scale_linear") ? RopeScaling::linear : untyped;
    KV_ASSIGN(const auto type, file_.get_string(key(kKey)));
    if (type == "none") return untyped;
    if (type == "linear") return RopeScaling::linear;
    if (type == "llama3") return RopeScaling::llama3;
    if (type == "yarn") return RopeScaling::yarn;
    if (type == "longrope") return RopeScaling::longrope;
    return error(ErrorCode::unsupported, kKey,
                 fmt::format("is '{}'; offered are none, linear, llama3, yarn and longrope", type));
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
  ModelGeometry geometry_;
};

}  // namespace

Result<ModelGeometry> ModelGeometry::from_gguf(const GgufFile& file) { return GeometryReader(file).read(); }

format::KvGeometry ModelGeometry::kv_geometry(format::KvFormat format, std::uint32_t block_tokens) const {
  format::KvGeometry geometry;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    if (kv_heads[layer] == 0) continue;
    auto group = std::find_if(geometry.groups.begin(), geometry.groups.end(),
                              [&](const format::CacheGroup& g) { return g.kv_heads == kv_heads[layer]; });
    if (group == geometry.groups.end()) {
      geometry.groups.push_back({.layers = {}, .kv_heads = kv_heads[layer], .head_dim = head_dim, .format = format,
                                 .window = 0, .block_tokens = block_tokens});
      group = geometry.groups.end() - 1;
    }
    group->layers.push_back(layer);
  }
  return geometry;
}

}  // namespace kvasir::artifact
