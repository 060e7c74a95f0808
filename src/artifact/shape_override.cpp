#include "artifact/shape_override.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "artifact/parameter_count.hpp"
#include "base/suggestion.hpp"

namespace kvasir::artifact {
namespace {

using namespace shape_limits;
using u32 = std::uint32_t;

constexpr std::string_view kByHand = "--set";

// What happens to the number of weights.
enum class Weights { same, recount_or_keep, recount_or_forget };

enum class Kind { whole, flag, count, bits };

// Whether it applied to anything.
using SetWhole = bool (*)(ModelShape&, u32);

struct Key {
  std::string_view name;
  Kind kind;
  u32 least, most;
  Weights weights;
  SetWhole set;   // whole numbers, and flags as 0 and 1; nullptr: override_field does it
};

using Has = bool (*)(const LayerShape&);

bool keeps_kv(const LayerShape& layer) { return layer.memory == Memory::attention; }
bool keeps_rows(const LayerShape& layer) { return keeps_kv(layer) || layer.memory == Memory::latent; }
bool is_recurrent(const LayerShape& layer) { return layer.memory == Memory::recurrent; }
bool has_window(const LayerShape& layer) { return layer.window != 0; }
bool has_dense(const LayerShape& layer) { return layer.feed_forward != 0; }
bool has_experts(const LayerShape& layer) { return layer.experts != 0; }
bool any_layer(const LayerShape&) { return true; }

// Sets a member of the layers that `where` is true of.
template <auto Member, Has where>
bool set_where(ModelShape& shape, u32 value) {
  bool applied = false;
  for (LayerShape& layer : shape.layers) {
    if (!where(layer)) continue;
    layer.*Member = value;
    applied = true;
  }
  return applied;
}

// The same, or of those that `otherwise` is true of if there are none.
template <auto Member, Has where, Has otherwise>
bool set_where_or(ModelShape& shape, u32 value) {
  return set_where<Member, where>(shape, value) || set_where<Member, otherwise>(shape, value);
}

template <auto Member>
bool set_own(ModelShape& shape, u32 value) {
  shape.*Member = value;
  return true;
}

bool set_flag_gated(ModelShape& shape, u32 value) {
  shape.gated = value != 0;
  return true;
}

bool set_flag_tied(ModelShape& shape, u32 value) {
  shape.tied_head = value != 0;
  return true;
}

bool set_layers(ModelShape& shape, u32 value) {
  const std::vector<LayerShape> old = shape.layers;
  if (old.empty()) return false;
  shape.layers.clear();
  for (u32 at = 0; at < value; ++at) shape.layers.push_back(old[at % old.size()]);
  return true;
}

bool set_head_dim(ModelShape& shape, u32 value) {
  return set_where<&LayerShape::k_dim, keeps_kv>(shape, value) && set_where<&LayerShape::v_dim, keeps_kv>(shape, value);
}

bool set_window(ModelShape& shape, u32 value) {
  if (!set_where_or<&LayerShape::window, has_window, keeps_kv>(shape, value)) return false;
  for (LayerShape& layer : shape.layers) layer.chunked = layer.chunked && layer.window != 0;
  return true;
}

constexpr Weights kKeep = Weights::recount_or_keep, kForget = Weights::recount_or_forget;

constexpr Key kKeys[] = {
    {"layers", Kind::whole, 1, kMaxLayers, kForget, set_layers},
    {"width", Kind::whole, 1, kMaxWidth, kForget, set_own<&ModelShape::width>},
    {"heads", Kind::whole, 1, kMaxHeads, kKeep, set_own<&ModelShape::heads>},
    {"kv_heads", Kind::whole, 1, kMaxHeads, kKeep, set_where<&LayerShape::kv_heads, keeps_kv>},
    {"head_dim", Kind::whole, 1, kMaxHeadDim, kKeep, set_head_dim},
    {"k_dim", Kind::whole, 1, kMaxHeadDim, kKeep, set_where<&LayerShape::k_dim, keeps_rows>},
    {"v_dim", Kind::whole, 1, kMaxHeadDim, kKeep, set_where<&LayerShape::v_dim, keeps_kv>},
    {"index_dim", Kind::whole, 0, kMaxHeadDim, Weights::same, set_where<&LayerShape::index_dim, keeps_rows>},
    {"window", Kind::whole, 0, kMaxTokens, Weights::same, set_window},
    {"state_elements", Kind::whole, 1, kMaxTokens, Weights::same, set_where<&LayerShape::state_elements, is_recurrent>},
    {"state_bytes", Kind::whole, 1, 8, Weights::same, set_where<&LayerShape::state_bytes, is_recurrent>},
    {"vocabulary", Kind::whole, 1, kMaxTokens, kForget, set_own<&ModelShape::vocabulary>},
    {"context", Kind::whole, 1, kMaxTokens, Weights::same, set_own<&ModelShape::context>},
    {"feed_forward", Kind::whole, 1, kMaxWidth, kForget, set_where_or<&LayerShape::feed_forward, has_dense, any_layer>},
    {"experts", Kind::whole, 0, kMaxExperts, kForget, set_where_or<&LayerShape::experts, has_experts, any_layer>},
    {"shared_experts", Kind::whole, 0, kMaxExperts, kForget, set_where<&LayerShape::shared_experts, has_experts>},
    {"expert_width", Kind::whole, 1, kMaxWidth, kForget, set_where<&LayerShape::expert_width, has_experts>},
    {"experts_per_token", Kind::whole, 0, kMaxExperts, kKeep, set_own<&ModelShape::experts_per_token>},
    {"gated", Kind::flag, 0, 1, kForget, set_flag_gated},
    {"tied_head", Kind::flag, 0, 1, kKeep, set_flag_tied},
    {"parameters", Kind::count, 0, 0, Weights::same, nullptr},
    {"active_parameters", Kind::count, 0, 0, Weights::same, nullptr},
    {"weight_bits", Kind::bits, 0, 0, Weights::same, nullptr},
};

Error bad_value(std::string_view key, std::string_view value, std::string_view valid) {
  return Error{ErrorCode::bad_input, fmt::format("'{}' is '{}'; valid: {}", key, value.substr(0, 64), valid)};
}

Error unknown(std::string_view key) {
  std::vector<std::string> names;
  for (const Key& known : kKeys) names.emplace_back(known.name);
  const std::string_view shown = key.substr(0, 64);
  return Error{ErrorCode::bad_input, fmt::format("unknown key '{}'; did you mean '{}'? (valid: {})", shown, nearest(shown, names),
                                                 fmt::join(names, ", "))};
}

Error applies_nowhere(std::string_view key, std::string_view model) {
  const bool of_experts = key == "shared_experts" || key == "expert_width";
  return Error{ErrorCode::bad_input, fmt::format("'{}' applies to no layer of {}; valid: {}", key, model,
                                                 of_experts ? "after experts=N, which gives its layers experts" : "keys of what its layers keep")};
}

Result<u32> parse_whole(const Key& key, std::string_view text) {
  u32 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= key.least && value <= key.most) return value;
  return bad_value(key.name, text, fmt::format("whole numbers from {} to {}", key.least, key.most));
}

Result<u32> parse_flag(const Key& key, std::string_view text) {
  if (text == "true") return 1u;
  if (text == "false") return 0u;
  return bad_value(key.name, text, "true, false");
}

// The number in front of `end`; NaN if there is none.
double parse_double(std::string_view text) {
  double value = NAN;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : NAN;
}

Result<std::uint64_t> parse_count(const Key& key, std::string_view text) {
  constexpr std::string_view kUnits = "KMBT";
  std::string_view digits = text;
  double unit = 1;
  if (const auto at = text.empty() ? std::string_view::npos : kUnits.find(text.back()); at != std::string_view::npos) {
    digits.remove_suffix(1);
    unit = std::pow(1000.0, static_cast<double>(at + 1));
  }
  const double value = std::round(parse_double(digits) * unit);
  const bool whole = unit != 1 || digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (whole && value >= 1 && value <= static_cast<double>(kMaxParameters)) return static_cast<std::uint64_t>(value);
  return bad_value(key.name, text, "a number of weights such as 8030000000 or 8.03B (K, M, B, T)");
}

void recount(ModelShape& shape, Weights weights) {
  if (weights == Weights::same) return;
  const auto by_hand = [&shape](std::string_view key) {
    const auto at = shape.said_by.find(key);
    return at != shape.said_by.end() && at->second == kByHand;
  };
  const auto count = count_parameters(shape);
  if (!count.ok() && weights == Weights::recount_or_keep) return;
  if (!by_hand("parameters")) shape.parameters = count.ok() ? count->total : 0;
  if (!by_hand("active_parameters"))
    shape.active_parameters = count.ok() && count->active != count->total ? count->active : 0;
}

Status set_number(ModelShape& shape, const Key& key, std::string_view value) {
  if (key.kind == Kind::bits) {
    const double bits = parse_double(value);
    if (!(bits > 0 && bits <= kMaxWeightBits)) return bad_value(key.name, value, "numbers above 0 to 64");
    shape.weight_bits = bits;
    return ok_status();
  }
  KV_ASSIGN(const std::uint64_t count, parse_count(key, value));
  (key.name == "parameters" ? shape.parameters : shape.active_parameters) = count;
  return ok_status();
}

}  // namespace

Status override_field(ModelShape& shape, std::string_view name, std::string_view value) {
  const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys), [name](const Key& known) { return known.name == name; });
  if (key == std::end(kKeys)) return unknown(name);
  if (key->set == nullptr) {
    KV_TRY(set_number(shape, *key, value));
  } else {
    KV_ASSIGN(const u32 number, key->kind == Kind::flag ? parse_flag(*key, value) : parse_whole(*key, value));
    const ModelShape before = shape;
    if (!key->set(shape, number)) return applies_nowhere(name, shape.name);
    if (!(shape == before)) recount(shape, key->weights);   // what it was already changes no weight
  }
  shape.said_by[std::string(name)] = kByHand;
  return ok_status();
}

std::vector<std::string_view> override_keys() {
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) names.push_back(key.name);
  return names;
}

}  // namespace kvasir::artifact
