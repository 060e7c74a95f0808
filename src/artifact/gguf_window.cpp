#include "artifact/gguf_window.hpp"

#include "artifact/model_shape.hpp"

namespace kvasir::artifact {
namespace {

// Every `period`-th layer looks at all of history, the others at the window; 0: all have the window.
struct WindowPeriod {
  std::string_view architecture;
  std::uint32_t period;
};
constexpr WindowPeriod kPeriods[] = {{"gemma2", 2},  {"gemma3", 6},  {"gemma3n", 5}, {"gemma4", 6}, {"gpt-oss", 2},
                                     {"cohere2", 4}, {"llama", 0},   {"olmo2", 4},   {"phi3", 0}};

constexpr std::string_view kPattern = "attention.sliding_window_pattern";

std::vector<bool> periodic(std::uint32_t layers, std::uint32_t period) {
  std::vector<bool> windowed(layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) windowed[layer] = period == 0 || (layer + 1) % period != 0;
  return windowed;
}

}  // namespace

Result<std::optional<std::vector<bool>>> window_layers(const GgufKeys& keys, std::uint32_t layers) {
  const GgufValue* value = keys.file().find(keys.key(kPattern));
  if (value == nullptr) {
    for (const WindowPeriod& known : kPeriods)
      if (known.architecture == keys.architecture()) return std::optional(periodic(layers, known.period));
    return std::optional<std::vector<bool>>();
  }
  if (!std::holds_alternative<GgufArray>(*value)) {
    KV_ASSIGN(const auto period, keys.uint_between(kPattern, 0, shape_limits::kMaxLayers));
    return std::optional(periodic(layers, period));
  }
  KV_ASSIGN(const auto flags, keys.by_layer(kPattern, layers, 1));
  return std::optional(std::vector<bool>(flags.begin(), flags.end()));
}

}  // namespace kvasir::artifact
