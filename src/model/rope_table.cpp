#include "model/rope_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/fixed_math.hpp"

namespace kvasir::model {
namespace {

using artifact::LayerRope;
using artifact::Rope;
using artifact::RopeScaling;

constexpr double kPi = 3.14159265358979323846;

bool uses(const artifact::ModelGeometry& g, LayerRope kind) {
  return std::find(g.layer_rope.begin(), g.layer_rope.end(), kind) != g.layer_rope.end();
}

// Whether layers with a window have a table of their own beside or instead of that of the others.
bool window_has_own(const artifact::ModelGeometry& g) { return uses(g, LayerRope::window) && g.window_rope != g.rope; }

bool full_is_used(const artifact::ModelGeometry& g) {
  return uses(g, LayerRope::full) || (uses(g, LayerRope::window) && !window_has_own(g));
}

// YaRN: the share by which pair i keeps its frequency, 1 for fast ones, 0 for slow ones.
class YarnRamp {
 public:
  explicit YarnRamp(const Rope& rope) {
    const double last = rope.dim - 1;
    low_ = pair_of(rope, rope.beta_fast);
    high_ = pair_of(rope, rope.beta_slow);
    if (rope.whole_pairs) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, last);
    if (low_ == high_) high_ += 0.001;
  }
  double kept(std::uint32_t pair) const { return 1 - std::clamp((pair - low_) / (high_ - low_), 0.0, 1.0); }

 private:
  // The pair, not a whole one, that turns `turns` times within the original context.
  static double pair_of(const Rope& rope, double turns) {
    return rope.dim * log_f64(rope.original_context / (turns * 2 * kPi)) / (2 * log_f64(rope.base));
  }
  double low_ = 0, high_ = 0;
};

void scale_yarn(const Rope& rope, RopeTable& table) {
  const YarnRamp ramp(rope);
  for (std::uint32_t i = 0; i < table.frequencies.size(); ++i) {
    const double kept = ramp.kept(i), plain = table.frequencies[i];
    table.frequencies[i] = plain / rope.factor * (1 - kept) + plain * kept;
  }
  table.scale = rope.attention_factor.value_or(rope.factor <= 1 ? 1 : 0.1 * log_f64(rope.factor) + 1);
}

}  // namespace

std::vector<Rope> ropes_of(const artifact::ModelGeometry& geometry) {
  std::vector<Rope> ropes;
  if (full_is_used(geometry)) ropes.push_back(geometry.rope);
  if (window_has_own(geometry)) ropes.push_back(geometry.window_rope);
  return ropes;
}

std::optional<std::uint32_t> rope_index(const artifact::ModelGeometry& geometry, std::uint32_t layer) {
  if (geometry.layer_rope[layer] == LayerRope::none) return std::nullopt;
  const bool own = geometry.layer_rope[layer] == LayerRope::window && window_has_own(geometry);
  return own && full_is_used(geometry) ? 1 : 0;
}

Result<RopeTable> make_rope_table(const Rope& rope, std::span<const float> factors, const std::string& name) {
  RopeTable table;
  const std::uint32_t pairs = rope.dim / 2;
  const double linear = rope.scaling == RopeScaling::linear ? rope.factor : 1.0;
  table.frequencies.resize(pairs);
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const float factor = factors.empty() ? 1.0f : factors[i];
    if (!(factor > 0.0f) || !(static_cast<double>(factor) < 1e6))
      return Error{ErrorCode::bad_input, fmt::format("{}[{}] is {}; a factor is positive and below 1e6", name, i, factor)};
    table.frequencies[i] = pow_f64(rope.base, -2.0 * i / rope.dim) / (static_cast<double>(factor) * linear);
  }
  if (rope.scaling == RopeScaling::yarn) scale_yarn(rope, table);
  else table.scale = rope.attention_factor.value_or(1);
  return table;
}

}  // namespace kvasir::model
