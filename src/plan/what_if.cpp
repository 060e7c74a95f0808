#include "plan/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace kvasir::plan {
namespace {

using artifact::LayerShape;
using artifact::Memory;

constexpr std::string_view kAsPlanned = "as planned";
constexpr std::uint32_t kBlockTokens[] = {16, 32, 64, 128, 256};
// A latent as DeepSeek-V2 has it: four heads wide, and half a head for the position (arXiv 2405.04434, section 2.1).
constexpr std::uint32_t kLatentHeads = 4;
// Layers with a window to one without, and its width, as Gemma 3 has it (arXiv 2503.19786, section 2).
constexpr std::uint32_t kLocalPerGlobal = 5, kLocalWindow = 1024;
constexpr std::uint32_t kWindow = 4096;   // of every layer, as Mistral 7B has it (arXiv 2310.06825)

struct Choice {
  std::string name;
  std::function<void(PlanInput&)> apply;
};

bool attends(const LayerShape& layer) { return layer.memory == Memory::attention && layer.merged == 1; }

template <class Fn>
Choice of_attention(std::string name, Fn change) {
  return {std::move(name), [change](PlanInput& input) {
            for (std::size_t i = 0; i < input.shape.layers.size(); ++i) {
              LayerShape& layer = input.shape.layers[i];
              if (attends(layer)) change(layer, i);
            }
          }};
}

std::vector<Choice> formats() {
  std::vector<Choice> choices;
  for (const format::KvType type : format::kKvTypes) {
    const format::KvFormat format{type, type};
    choices.push_back({std::string(format::to_string(type)), [format](PlanInput& to) { to.kv.format = format; }});
  }
  return choices;
}

std::vector<Choice> blocks() {
  std::vector<Choice> choices;
  for (const std::uint32_t tokens : kBlockTokens) {
    choices.push_back({fmt::format("blocks of {}", tokens), [tokens](PlanInput& to) { to.kv.block_tokens = tokens; }});
  }
  return choices;
}

Choice latents_as_heads(const artifact::ModelShape& shape) {
  const std::uint32_t heads = shape.heads, k_dim = shape.nope_dim + shape.rope_dim, v_dim = shape.value_dim;
  return {fmt::format("{} KV heads, no latent", heads), [=](PlanInput& to) {
            for (LayerShape& layer : to.shape.layers) {
              if (layer.memory != Memory::latent) continue;
              layer.memory = Memory::attention;
              layer.kv_heads = heads;
              layer.k_dim = k_dim;
              layer.v_dim = v_dim;
            }
          }};
}

std::vector<Choice> heads_of(const artifact::ModelShape& shape) {
  std::vector<Choice> choices;
  const auto first = std::ranges::find_if(shape.layers, attends);
  if (first != shape.layers.end()) {
    for (const std::uint32_t count : std::set<std::uint32_t, std::greater<>>{shape.heads, 16, 8, 4, 2, 1}) {
      if (count == 0 || count > shape.heads || shape.heads % count != 0) continue;
      choices.push_back(of_attention(fmt::format("{} KV head{}", count, count == 1 ? "" : "s"), [count](LayerShape& layer, std::size_t) { layer.kv_heads = count; }));
    }
    const std::uint32_t wide = first->k_dim * kLatentHeads + first->k_dim / 2;
    choices.push_back(of_attention(fmt::format("a latent of {}", wide), [wide](LayerShape& layer, std::size_t) {
      layer.memory = Memory::latent;
      layer.kv_heads = 1;
      layer.k_dim = wide;
      layer.v_dim = 0;
    }));
  }
  if (shape.heads > 0 && shape.value_dim > 0) choices.push_back(latents_as_heads(shape));
  return choices;
}

std::vector<Choice> windows() {
  std::vector<Choice> choices;
  const auto window = [](LayerShape& layer, std::uint32_t tokens) {
    layer.window = tokens;
    layer.chunked = false;
  };
  choices.push_back(of_attention("no window", [window](LayerShape& layer, std::size_t) { window(layer, 0); }));
  choices.push_back(of_attention(fmt::format("window {} everywhere", kWindow), [window](LayerShape& layer, std::size_t) { window(layer, kWindow); }));
  choices.push_back(of_attention(fmt::format("window {} in {} of {} layers", kLocalWindow, kLocalPerGlobal, kLocalPerGlobal + 1),
                                 [window](LayerShape& layer, std::size_t i) { window(layer, i % (kLocalPerGlobal + 1) == kLocalPerGlobal ? 0 : kLocalWindow); }));
  return choices;
}

// Choices that change nothing are not offered: what is planned already, a window where there are latents alone.
bool changes(const Choice& choice, const PlanInput& input) {
  PlanInput changed = input;
  choice.apply(changed);
  return changed.shape.layers != input.shape.layers || !(changed.kv.format == input.kv.format) || changed.kv.block_tokens != input.kv.block_tokens;
}

std::vector<Choice> choices_of(const PlanInput& input, Axis axis) {
  std::vector<Choice> choices = axis == Axis::formats ? formats() : axis == Axis::heads ? heads_of(input.shape) : axis == Axis::blocks ? blocks() : windows();
  std::erase_if(choices, [&](const Choice& choice) { return !changes(choice, input); });
  choices.insert(choices.begin(), Choice{std::string(kAsPlanned), [](PlanInput&) {}});
  return choices;
}

Result<Alternative> plan_of(const PlanInput& input, std::uint64_t memory) {
  Alternative out;
  KV_ASSIGN(const CapacityPlan plan, plan_capacity(input));
  out.kv_bytes_per_token = plan.kv_bytes_per_token;
  out.kv_bytes = plan.kv_bytes;
  out.state_bytes = plan.state_bytes;
  out.total_bytes = plan.total_bytes;
  if (memory != 0) {
    KV_ASSIGN(out.max_sequences, most_requests(input, memory));
  }
  return out;
}

}  // namespace

std::string_view to_string(Axis axis) {
  constexpr std::string_view kNames[] = {"formats", "heads", "blocks", "windows"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::optional<Axis> parse_axis(std::string_view name) {
  for (const Axis axis : kAxes) {
    if (to_string(axis) == name) return axis;
  }
  return std::nullopt;
}

Result<std::vector<Alternative>> what_if(const PlanInput& input, const std::vector<Axis>& axes, std::uint64_t memory) {
  KV_CHECK(!input.held, "what a mix holds is that of one layout");
  if (axes.empty()) return Error{ErrorCode::bad_input, "what-if names no axis; valid: formats, heads, blocks, windows"};
  std::vector<std::vector<Choice>> offered;
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) != axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Error{ErrorCode::bad_input, fmt::format("what-if names {} twice", to_string(axes[i]))};
    }
    offered.push_back(choices_of(input, axes[i]));
    combinations *= offered.back().size();   // four axes of at most ten
  }
  std::vector<Alternative> out;
  for (std::size_t n = 0; n < combinations; ++n) {
    PlanInput changed = input;
    std::vector<std::string> names;
    std::size_t rest = n, below = combinations;
    for (const std::vector<Choice>& choices : offered) {   // the last axis changes fastest
      below /= choices.size();
      const Choice& choice = choices[rest / below];
      rest %= below;
      choice.apply(changed);
      names.push_back(choice.name);
    }
    Result<Alternative> one = plan_of(changed, memory);
    if (!one.ok() && n == 0) return std::move(one).error();
    if (!one.ok()) continue;
    one->choices = std::move(names);
    out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace kvasir::plan
