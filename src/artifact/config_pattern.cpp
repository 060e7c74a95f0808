#include "artifact/config_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

using Kinds = std::vector<LayerKind>;

constexpr std::string_view kKey = "layer_kinds";  // in ModelShape::said_by

struct Word {
  std::string_view text;
  LayerKind kind;
};

constexpr Word kWords[] = {
    {"full_attention", LayerKind::full},      {"attention", LayerKind::full},
    {"deepseek_sparse_attention", LayerKind::full}, {"sliding_attention", LayerKind::window},
    {"chunked_attention", LayerKind::chunk},  {"linear_attention", LayerKind::linear},
    {"mamba", LayerKind::mamba},              {"conv", LayerKind::conv},
    {"mlp", LayerKind::feed_forward},         {"moe", LayerKind::experts},
};

// layer_types, layers_block_type: a word a layer.
Result<Kinds> from_words(const ConfigFields& fields, std::string_view name, std::uint32_t layers) {
  KV_ASSIGN(const auto texts, fields.text_list(kKey, name, layers));
  Kinds kinds;
  for (const std::string& text : texts) {
    const Word* found = nullptr;
    for (const Word& word : kWords)
      if (word.text == text) found = &word;
    if (found == nullptr) {
      std::string valid;
      for (const Word& word : kWords) valid += fmt::format("{}{}", valid.empty() ? "" : ", ", word.text);
      return fields.bad(fmt::format("{}[{}]", name, kinds.size()), nlohmann::json(text), valid);
    }
    kinds.push_back(found->kind);
  }
  return kinds;
}

// hybrid_override_pattern (Nemotron-H): a character a block.
Result<Kinds> from_characters(const ConfigFields& fields, std::string_view name, std::uint32_t layers) {
  KV_ASSIGN(const auto text, fields.find_text(kKey, name));
  if (text->size() != layers)
    return fields.bad_words(name, fmt::format("{} characters", text->size()), fmt::format("{} characters, one a layer", layers));
  Kinds kinds;
  for (const char c : *text) {
    switch (c) {
      case 'M': kinds.push_back(LayerKind::mamba); break;
      case '*': kinds.push_back(LayerKind::full); break;
      case '-': kinds.push_back(LayerKind::feed_forward); break;
      case 'E': kinds.push_back(LayerKind::experts); break;
      default:
        return fields.bad(fmt::format("{}[{}]", name, kinds.size()), nlohmann::json(std::string(1, c)),
                          "M (Mamba), * (attention), - (feed-forward), E (experts)");
    }
  }
  return kinds;
}

// hybrid_layer_pattern (MiMo), attn_type_list (MiniMax): a bit a layer.
Result<Kinds> from_bits(const ConfigFields& fields, std::string_view name, std::uint32_t layers, LayerKind zero,
                        LayerKind one) {
  KV_ASSIGN(const auto bits, fields.whole_list(kKey, name, layers, {0, 1}));
  Kinds kinds;
  for (const std::uint32_t bit : bits) kinds.push_back(bit == 0 ? zero : one);
  return kinds;
}

// linear_attn_config (Kimi): layers counted from 1, in two lists that share them out.
Result<Kinds> from_linear_lists(const ConfigFields& fields, std::uint32_t layers) {
  constexpr std::string_view kLinear = "linear_attn_config.kda_layers", kFull = "linear_attn_config.full_attn_layers";
  KV_ASSIGN(const auto linear, fields.whole_list(kKey, kLinear, std::nullopt, {1, layers}));
  KV_ASSIGN(const auto full, fields.whole_list("", kFull, std::nullopt, {1, layers}));
  std::vector<std::uint8_t> named(layers, 0);
  for (const auto* list : {&linear, &full})
    for (const std::uint32_t id : *list)
      if (++named[id - 1] > 1)
        return fields.bad_words(kLinear, fmt::format("naming layer {} twice (with full_attn_layers)", id), "each layer once");
  Kinds kinds(layers, LayerKind::full);
  for (const std::uint32_t id : linear) kinds[id - 1] = LayerKind::linear;
  for (std::uint32_t layer = 0; fields.has(kFull) && layer < layers; ++layer)
    if (named[layer] == 0)
      return fields.bad_words(kLinear, fmt::format("without layer {} (with full_attn_layers)", layer + 1), "each layer once");
  return kinds;
}

// Every `period`-th layer is `rest`, at `offset`; the others are `most`.
Kinds periodic(std::uint32_t layers, std::uint32_t period, std::uint32_t offset, LayerKind most, LayerKind rest) {
  Kinds kinds(layers, most);
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    if (layer % period == offset) kinds[layer] = rest;
  return kinds;
}

// attn_layer_period and attn_layer_offset (Jamba).
Result<Kinds> from_attention_period(const ConfigFields& fields, std::uint32_t layers) {
  KV_ASSIGN(const auto period, fields.whole(kKey, {"attn_layer_period"}, {1, shape_limits::kMaxLayers}));
  KV_ASSIGN(const auto offset, fields.whole_or("", {"attn_layer_offset"}, {0, period - 1}, 0));
  return periodic(layers, period, offset, LayerKind::mamba, LayerKind::full);
}

// attention_chunk_size (Llama 4): layers without rotary positions are full; without a list every fourth.
Result<Kinds> from_chunks(const ConfigFields& fields, std::uint32_t layers) {
  KV_ASSIGN(const auto rotary, fields.whole_list(kKey, "no_rope_layers", std::nullopt, {0, 1}));  // 1: has them
  if (rotary.empty()) {
    KV_ASSIGN(const auto period,
              fields.whole_or(kKey, {"no_rope_layer_interval"}, {1, shape_limits::kMaxLayers}, 4));
    return periodic(layers, period, period - 1, LayerKind::chunk, LayerKind::full);
  }
  return from_bits(fields, "no_rope_layers", layers, LayerKind::full, LayerKind::chunk);
}

// sliding_window_pattern as letters (EXAONE 4): L is a window, G is full, over and over.
Result<Kinds> from_letters(const ConfigFields& fields, std::string_view name, std::uint32_t layers) {
  KV_ASSIGN(const auto text, fields.find_text(kKey, name));
  if (text->empty() || text->find_first_not_of("LG") != std::string::npos)
    return fields.bad(name, nlohmann::json(*text), "a whole number, or letters L (window) and G (full)");
  Kinds kinds;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    kinds.push_back((*text)[layer % text->size()] == 'L' ? LayerKind::window : LayerKind::full);
  return kinds;
}

// A sliding window without a list of layers.
Result<Kinds> from_window(const ConfigFields& fields, const Family& family, std::uint32_t layers) {
  KV_ASSIGN(const auto used, fields.find_flag("", "use_sliding_window"));
  const bool opt_in = family.name.starts_with("qwen");
  if (!used.value_or(!opt_in)) return Kinds(layers, LayerKind::full);
  if (opt_in) {  // the first max_window_layers layers are full
    KV_ASSIGN(const auto first, fields.whole_or(kKey, {"max_window_layers"}, {0, shape_limits::kMaxLayers}, 0));
    Kinds kinds(layers, LayerKind::window);
    for (std::uint32_t layer = 0; layer < std::min(first, layers); ++layer) kinds[layer] = LayerKind::full;
    return kinds;
  }
  const auto pattern = fields.first_of({"sliding_window_pattern", "_sliding_window_pattern"});
  if (pattern && fields.find(*pattern)->is_string()) return from_letters(fields, *pattern, layers);
  std::uint32_t period = family.window_period;
  if (pattern) {
    KV_ASSIGN(period, fields.whole(kKey, {*pattern}, {1, shape_limits::kMaxLayers}));
  }
  if (period == 0) return Kinds(layers, LayerKind::window);
  return periodic(layers, period, period - 1, LayerKind::window, LayerKind::full);
}

}  // namespace

Result<Kinds> layer_kinds(const ConfigFields& fields, const Family& family, std::uint32_t layers) {
  if (fields.has("hybrid_override_pattern")) return from_characters(fields, "hybrid_override_pattern", layers);
  if (fields.has("layers_block_type")) return from_words(fields, "layers_block_type", layers);
  if (fields.has("layer_types")) return from_words(fields, "layer_types", layers);
  if (fields.has("hybrid_layer_pattern"))
    return from_bits(fields, "hybrid_layer_pattern", layers, LayerKind::full, LayerKind::window);
  if (fields.has("attn_type_list"))
    return from_bits(fields, "attn_type_list", layers, LayerKind::linear, LayerKind::full);
  if (fields.has("linear_attn_config.kda_layers")) return from_linear_lists(fields, layers);
  if (fields.has("attn_layer_period")) return from_attention_period(fields, layers);
  if (fields.has("full_attention_interval")) {
    KV_ASSIGN(const auto period, fields.whole(kKey, {"full_attention_interval"}, {1, shape_limits::kMaxLayers}));
    return periodic(layers, period, period - 1, LayerKind::linear, LayerKind::full);
  }
  // compress_ratios (DeepSeek-V4) says itself where its window is alone.
  if (fields.has("compress_ratios")) return Kinds(layers, LayerKind::full);
  if (fields.first_of({"sliding_window", "sliding_window_size"})) return from_window(fields, family, layers);
  if (fields.has("attention_chunk_size")) return from_chunks(fields, layers);
  return Kinds(layers, LayerKind::full);
}

}  // namespace kvasir::artifact
