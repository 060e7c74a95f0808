#include "artifact/parameter_count.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::artifact {
namespace {

using u64 = std::uint64_t;

// Sums of products that remember whether one overflowed.
class Sum {
 public:
  void add(u64 a, u64 b = 1, u64 c = 1) {
    u64 product = 0;
    overflowed_ = __builtin_mul_overflow(a, b, &product) || __builtin_mul_overflow(product, c, &product) ||
                  __builtin_add_overflow(value_, product, &value_) || overflowed_;
  }
  u64 value() const { return value_; }
  bool overflowed() const { return overflowed_; }

 private:
  u64 value_ = 0;
  bool overflowed_ = false;
};

struct Sums {
  Sum attention, feed_forward, experts, idle, norms;  // idle: experts a token does not use
};

void add_attention(const ModelShape& shape, const LayerShape& layer, Sum& sum) {
  const u64 width = shape.width, heads = shape.heads;
  sum.add(layer.mixer_parameters);
  if (layer.memory == Memory::attention) {
    sum.add(width, heads, u64{layer.k_dim} + layer.v_dim);             // queries and output
    sum.add(width, layer.kv_heads, u64{layer.k_dim} + layer.v_dim);
  }
  if (layer.memory != Memory::latent) return;
  sum.add(width, layer.k_dim);
  const u64 query_dim = u64{shape.nope_dim} + shape.rope_dim;
  if (query_dim == 0) return;  // rows are used as they are: the rest is in mixer_parameters
  if (shape.query_rank == 0) {
    sum.add(width, heads, query_dim);
  } else {
    sum.add(shape.query_rank, width);
    sum.add(shape.query_rank, heads, query_dim);
  }
  sum.add(layer.k_dim - std::min(layer.k_dim, shape.rope_dim), heads, u64{shape.nope_dim} + shape.value_dim);
  sum.add(width, heads, shape.value_dim);
}

void add_layer(const ModelShape& shape, const LayerShape& layer, Sums& sums) {
  const u64 width = shape.width, matrices = shape.gated ? 3 : 2;
  add_attention(shape, layer, sums.attention);
  sums.feed_forward.add(matrices * width, layer.feed_forward);
  if (layer.experts != 0) {
    sums.experts.add(matrices * width, layer.expert_width, u64{layer.experts} + layer.shared_experts);
    sums.experts.add(width, layer.experts);
    if (shape.experts_per_token != 0)
      sums.idle.add(matrices * width, layer.expert_width, layer.experts - std::min(layer.experts, shape.experts_per_token));
  }
  const bool mixes = layer.memory != Memory::none || layer.mixer_parameters != 0;
  sums.norms.add(width, (mixes ? 1 : 0) + (layer.feed_forward + layer.experts != 0 ? 1 : 0));
}

}  // namespace

Result<ParameterCount> count_parameters(const ModelShape& shape) {
  const bool known = std::any_of(shape.layers.begin(), shape.layers.end(), [](const LayerShape& layer) {
    return layer.feed_forward != 0 || layer.experts != 0;
  });
  if (!known)
    return Error{ErrorCode::unsupported,
                 fmt::format("{}: no layer says how wide its feed-forward is, so weights cannot be counted; set "
                             "feed_forward or parameters",
                             shape.name)};
  Sums sums;
  for (const LayerShape& layer : shape.layers) add_layer(shape, layer, sums);
  sums.norms.add(shape.width);
  ParameterCount count;
  count.embedding = u64{shape.vocabulary} * shape.width;
  count.head = shape.tied_head ? 0 : count.embedding;
  count.attention = sums.attention.value();
  count.feed_forward = sums.feed_forward.value();
  count.experts = sums.experts.value();
  count.norms = sums.norms.value();
  count.other = shape.other_parameters;
  Sum total;
  for (const u64 part : {count.embedding, count.head, count.attention, count.feed_forward, count.experts, count.norms, count.other})
    total.add(part);
  bool overflowed = total.overflowed() || total.value() > shape_limits::kMaxParameters;
  for (const Sum* sum : {&sums.attention, &sums.feed_forward, &sums.experts, &sums.idle, &sums.norms})
    overflowed = overflowed || sum->overflowed();
  if (overflowed)
    return Error{ErrorCode::bad_input,
                 fmt::format("{}: its sizes give more than {} weights; valid are fewer", shape.name, shape_limits::kMaxParameters)};
  count.total = total.value();
  count.active = count.total - sums.idle.value();
  return count;
}

u64 counted_parameters(const ModelShape& shape) {
  const auto count = count_parameters(shape);
  return count.ok() ? count->total : 0;
}

}  // namespace kvasir::artifact
