#include "plan/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "artifact/parameter_count.hpp"
#include "base/units.hpp"
#include "plan/search.hpp"

namespace kvasir::plan {
namespace {

using artifact::LayerShape;
using artifact::Memory;
using artifact::ModelShape;
using artifact::ParameterCount;
using u64 = std::uint64_t;

LayerShape rank_layer(LayerShape layer, const ParallelLayout& layout, u64 expert_rank) {
  const std::uint32_t tensor = layout.tensor;
  if (layer.memory == Memory::attention) layer.kv_heads = std::max(1u, layer.kv_heads / tensor);
  layer.state_elements = ceil_div(layer.state_elements, tensor);
  if (layer.index_dim == 0) layer.mixer_parameters = ceil_div(layer.mixer_parameters, tensor);
  layer.feed_forward /= tensor;
  if (!layout.expert) {
    layer.expert_width /= tensor;
    return layer;
  }
  const u64 ranks = u64{tensor} * layout.data;
  layer.experts = static_cast<std::uint32_t>(layer.experts / ranks + (expert_rank < layer.experts % ranks ? 1 : 0));
  layer.feed_forward += static_cast<std::uint32_t>(u64{layer.shared_experts} * layer.expert_width / tensor);
  layer.shared_experts = 0;
  return layer;
}

ModelShape rank_shape(const ModelShape& shape, const ParallelLayout& layout, const Rank& rank) {
  ModelShape out = shape;
  out.layers.clear();
  for (std::uint32_t at = rank.first_layer; at < rank.first_layer + rank.layers; ++at)
    out.layers.push_back(rank_layer(shape.layers[at], layout, rank.expert_rank));
  out.heads = shape.heads / layout.tensor;
  out.vocabulary = static_cast<std::uint32_t>(ceil_div(shape.vocabulary, layout.tensor));
  return out;
}

// Of models whose feed-forward widths nobody tells, `feed_forward` is what the published number leaves for them.
struct Counted {
  ParameterCount count;
  bool widths = true;
};

Result<Counted> count_whole(const ModelShape& shape) {
  Result<ParameterCount> count = artifact::count_parameters(shape);
  if (count.ok()) return Counted{*count, true};
  if (count.error().code != ErrorCode::unsupported) return std::move(count).error();
  ModelShape narrow = shape;  // the other classes do not depend on it
  for (LayerShape& layer : narrow.layers) layer.feed_forward = 1;
  KV_ASSIGN(ParameterCount known, artifact::count_parameters(narrow));
  const u64 others = known.total - known.feed_forward;
  known.feed_forward = shape.parameters > others ? shape.parameters - others : 0;
  known.total = others + known.feed_forward;
  return Counted{known, false};
}

Result<ParameterCount> count_rank(const ModelShape& whole, const Counted& counted, const ModelShape& part,
                                  const ParallelLayout& layout, const Rank& rank) {
  const bool first = rank.stage == 0, last = rank.stage + 1 == layout.pipeline;
  ModelShape alike = part;
  if (!counted.widths)
    for (LayerShape& layer : alike.layers) layer.feed_forward = 1;
  KV_ASSIGN(ParameterCount count, artifact::count_parameters(alike));
  if (!counted.widths)
    count.feed_forward =
        ceil_div(ceil_div(counted.count.feed_forward, whole.layers.size()) * rank.layers, layout.tensor);
  if (layout.expert) {
    // Shared experts were planned as a dense block, and routers know every expert.
    for (std::uint32_t at = 0; at < rank.layers; ++at) {
      const LayerShape& layer = whole.layers[rank.first_layer + at];
      const u64 shared = u64{whole.gated ? 3u : 2u} * whole.width *
                         (part.layers[at].feed_forward - layer.feed_forward / layout.tensor);
      count.feed_forward -= shared;
      count.experts += shared + u64{whole.width} * (layer.experts - part.layers[at].experts);
    }
  }
  if (!first && !(whole.tied_head && last)) count.embedding = 0;
  if (!last) count.head = 0;
  if (!last) count.norms -= whole.width;
  if (!first) count.other = 0;
  count.total =
      count.embedding + count.head + count.attention + count.feed_forward + count.experts + count.norms + count.other;
  return count;
}

__extension__ using u128 = unsigned __int128;

// bytes x part / whole, rounded up. part <= 2^53 and bytes < 2^63, and what a device holds of a class is at most a few
// wholes.
u64 scaled(u64 bytes, u64 part, u64 whole) {
  if (whole == 0) return bytes;
  return static_cast<u64>((static_cast<u128>(bytes) * part + whole - 1) / whole);
}

struct ClassCount {
  std::string_view line;
  u64 ParameterCount::*count;
};
constexpr ClassCount kClasses[] = {{"weights", &ParameterCount::total},
                                   {"weights.embedding", &ParameterCount::embedding},
                                   {"weights.head", &ParameterCount::head},
                                   {"weights.attention", &ParameterCount::attention},
                                   {"weights.feed_forward", &ParameterCount::feed_forward},
                                   {"weights.experts", &ParameterCount::experts},
                                   {"weights.norms", &ParameterCount::norms},
                                   {"weights.other", &ParameterCount::other}};

std::vector<PlanLine> rank_weights(const std::vector<PlanLine>& lines, const ParameterCount& whole,
                                   const ParameterCount& part) {
  std::vector<PlanLine> out;
  for (PlanLine line : lines) {
    for (const ClassCount& one : kClasses) {
      if (one.line != line.name || part.*one.count == whole.*one.count) continue;
      line.bytes = scaled(line.bytes, part.*one.count, whole.*one.count);
      line.how = fmt::format("{} of {} parameters: {}", part.*one.count, whole.*one.count, line.how);
    }
    if (line.bytes > 0) out.push_back(std::move(line));
  }
  return out;
}

void keep_stage_skips(KvChoice& kv, const Rank& rank) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t layer : kv.skip_layers) {
    if (layer >= rank.first_layer && layer < rank.first_layer + rank.layers) kept.push_back(layer - rank.first_layer);
  }
  kv.skip_layers = std::move(kept);
}

// Logits are made by the last stage alone.
void drop_line(CapacityPlan& plan, std::string_view name) {
  std::erase_if(plan.lines, [&](const PlanLine& line) {
    if (line.name == name) plan.total_bytes -= line.bytes;
    return line.name == name;
  });
}

Result<bool> fits(const PlanInput& input, const ParallelLayout& layout, u64 memory) {
  const Result<ParallelPlan> plan = plan_parallel(input, layout);
  return at_most(plan.ok() ? Result<u64>(plan->ranks[plan->worst].plan.total_bytes) : plan.error(), memory);
}

}  // namespace

Result<PlanInput> rank_input(const PlanInput& input, const ParallelLayout& layout, const Rank& rank) {
  PlanInput out = input;
  out.requests = ceil_div(input.requests, layout.data);
  if (layout.tensor == 1 && layout.pipeline == 1 && !layout.expert) return out;
  out.shape = rank_shape(input.shape, layout, rank);
  out.geometry = engine_geometry(out.shape);
  keep_stage_skips(out.kv, rank);
  if (input.weights.empty()) return out;
  KV_ASSIGN(const Counted whole, count_whole(input.shape));
  KV_ASSIGN(const ParameterCount part, count_rank(input.shape, whole, out.shape, layout, rank));
  out.weights = rank_weights(input.weights, whole.count, part);
  return out;
}

Result<ParallelPlan> plan_parallel(const PlanInput& input, const ParallelLayout& layout) {
  KV_TRY(check_layout(input.shape, layout));
  ParallelPlan out;
  out.layout = layout;
  out.requests = ceil_div(input.requests, layout.data);
  for (const LayerShape& layer : input.shape.layers) {
    if (layer.memory != Memory::attention && layer.memory != Memory::latent) continue;
    out.kv_heads = std::max(out.kv_heads, layer.kv_heads);
    out.kv_copies = std::max(out.kv_copies, layout.tensor / std::min(layout.tensor, layer.kv_heads));
  }
  for (const Rank& rank : ranks_of(input.shape, layout)) {
    KV_ASSIGN(const PlanInput one, rank_input(input, layout, rank));
    KV_ASSIGN(CapacityPlan plan, plan_capacity(one));
    if (rank.stage + 1 != layout.pipeline) {
      drop_line(plan, "logits");
      drop_line(plan, "sampler");
    }
    out.ranks.push_back({rank, std::move(plan)});
    if (out.ranks.back().plan.total_bytes > out.ranks[out.worst].plan.total_bytes) out.worst = out.ranks.size() - 1;
  }
  return out;
}

Result<u64> most_requests(const PlanInput& input, const ParallelLayout& layout, u64 memory) {
  KV_TRY(check_layout(input.shape, layout));
  return largest_requests(input, [&](const PlanInput& one) { return fits(one, layout, memory); });
}

Result<u64> longest_length(const PlanInput& input, const ParallelLayout& layout, u64 memory) {
  KV_TRY(check_layout(input.shape, layout));
  return largest_length(input, [&](const PlanInput& one) { return fits(one, layout, memory); });
}

}  // namespace kvasir::plan
