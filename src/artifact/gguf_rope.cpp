#include "artifact/gguf_rope.hpp"

#include <fmt/format.h>

#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;

constexpr std::string_view kType = "rope.scaling.type";

// Llama 3 and Phi 3 have no type of their own in a file: their factors are tensors, and the type is absent or "none".
Result<RopeScaling> read_scaling(const GgufKeys& keys) {
  RopeScaling untyped = RopeScaling::none;
  if (keys.file().find_tensor("rope_freqs.weight") != nullptr) untyped = RopeScaling::llama3;
  if (keys.file().find_tensor("rope_factors_long.weight") != nullptr) untyped = RopeScaling::longrope;
  if (!keys.has(kType)) return keys.has("rope.scale_linear") ? RopeScaling::linear : untyped;
  KV_ASSIGN(const auto type, keys.file().get_string(keys.key(kType)));
  if (type == "none") return untyped;
  if (type == "linear") return RopeScaling::linear;
  if (type == "llama3") return RopeScaling::llama3;
  if (type == "yarn") return RopeScaling::yarn;
  if (type == "longrope") return RopeScaling::longrope;
  // Its base grows with the sequence, so keys in the cache would have been turned by angles that no longer hold.
  if (type == "dynamic")
    return keys.error(ErrorCode::unsupported, kType,
                      "is 'dynamic', whose angles change as a sequence grows: keys that are stored cannot follow; offered are "
                      "none, linear, llama3, yarn and longrope");
  return keys.error(ErrorCode::unsupported, kType,
                    fmt::format("is '{}'; offered are none, linear, llama3, yarn and longrope", type));
}

Status read_scaling_numbers(const GgufKeys& keys, Rope& rope) {
  if (keys.has("rope.scaling.original_context_length")) {
    KV_ASSIGN(rope.original_context, keys.uint_between("rope.scaling.original_context_length", 0, kMaxTokens));
  }
  KV_ASSIGN(rope.factor, keys.positive(keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear", rope.factor));
  KV_ASSIGN(rope.beta_fast, keys.positive("rope.scaling.yarn_beta_fast", rope.beta_fast));
  KV_ASSIGN(rope.beta_slow, keys.positive("rope.scaling.yarn_beta_slow", rope.beta_slow));
  const bool yarn = rope.scaling == RopeScaling::yarn;
  const std::string_view attention = yarn ? "rope.scaling.yarn_attn_factor" : "rope.scaling.attn_factor";
  if (keys.has(attention)) {
    KV_ASSIGN(rope.attention_factor, keys.positive(attention, 1));
  }
  struct Plain {
    std::string_view suffix;
    double value;
  };
  for (const Plain& plain : {Plain{"rope.scaling.yarn_log_multiplier", 0}, {"rope.scaling.yarn_ext_factor", 1}, {"rope.scaling.attn_factor", 1}}) {
    if (!yarn || !keys.has(plain.suffix)) continue;
    KV_ASSIGN(const double value, keys.file().get_float(keys.key(plain.suffix)));
    if (value != plain.value)
      return keys.error(ErrorCode::unsupported, plain.suffix, fmt::format("is {}; with yarn only {} is offered", value, plain.value));
  }
  return ok_status();
}

}  // namespace

Result<Rope> read_rope(const GgufKeys& keys, std::uint32_t head_dim) {
  Rope rope{.pairing = rope_pairing(keys.architecture()), .dim = head_dim};
  if (keys.has("rope.dimension_count")) {
    KV_ASSIGN(rope.dim, keys.uint_between("rope.dimension_count", 1, head_dim));
    if (rope.dim % 2 != 0) return keys.bad("rope.dimension_count", fmt::format("is {}; an even number is valid", rope.dim));
  }
  if (rope.pairing != RopePairing::none && rope.dim % 2 != 0)
    return keys.bad("attention.key_length", fmt::format("gives heads of {} elements; rotary positions need an even number", rope.dim));
  KV_ASSIGN(rope.base, keys.positive("rope.freq_base", rope.base));
  KV_ASSIGN(rope.scaling, read_scaling(keys));
  KV_TRY(read_scaling_numbers(keys, rope));
  // The published configuration of these says truncate = false, which has no key in a file.
  rope.whole_pairs = keys.architecture() != "gpt-oss";
  return rope;
}

Result<Rope> read_window_rope(const GgufKeys& keys, const Rope& rope) {
  Rope window = rope;
  // Their layers with a window were trained without scaling, Gemma's with a base of their own.
  if (keys.architecture() == "gemma3" || keys.architecture() == "olmo2")
    window = {.pairing = rope.pairing, .dim = rope.dim, .base = keys.architecture() == "gemma3" ? 10'000 : rope.base};
  KV_ASSIGN(window.base, keys.positive("rope.freq_base_swa", window.base));
  return window;
}

bool layer_rotates(std::string_view architecture, std::uint32_t layer) {
  return architecture != "smollm3" || (layer + 1) % 4 != 0;
}

}  // namespace kvasir::artifact
