// Which layouts a model can have, and the kinds of devices in one.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "plan/parallel.hpp"

namespace kvasir::plan {
namespace {

using artifact::LayerShape;
using artifact::Memory;
using artifact::ModelShape;
using u64 = std::uint64_t;

std::string divisors(u64 of) {
  std::string out;
  for (u64 n = 1; n <= std::min<u64>(of, kMaxParallel); ++n) {
    if (of % n == 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", n);
  }
  return out;
}

Status divides(std::uint32_t tensor, u64 count, std::string_view what) {
  if (count % tensor == 0) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("tensor-parallel-size {} does not divide the {} {}; valid: {}", tensor,
                                                 count, what, divisors(count))};
}

Status in_range(std::string_view key, u64 value, u64 most) {
  if (value >= 1 && value <= most) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("{} is {}, valid: 1 to {}", key, value, most)};
}

Status check_layer(const LayerShape& layer, const ParallelLayout& layout) {
  if (layer.memory == Memory::attention && layer.kv_heads >= layout.tensor) {
    KV_TRY(divides(layout.tensor, layer.kv_heads, "KV heads of a layer"));
  } else if (layer.memory == Memory::attention && layout.tensor % layer.kv_heads != 0) {
    return Error{ErrorCode::bad_input, fmt::format("tensor-parallel-size {} is no multiple of the {} KV heads of a "
                                                   "layer, beyond which each is copied as often",
                                                   layout.tensor, layer.kv_heads)};
  }
  KV_TRY(divides(layout.tensor, layer.feed_forward, "channels of a feed-forward block"));
  const u64 shared = u64{layer.shared_experts} * layer.expert_width;
  if (layout.expert) KV_TRY(in_range("channels of the shared experts and one", shared + 1, artifact::shape_limits::kMaxWidth));
  if (layout.expert) return divides(layout.tensor, shared, "channels of the shared experts");
  return divides(layout.tensor, layer.expert_width, "channels of an expert");
}

u64 most_experts(const ModelShape& shape) {
  u64 most = 0;
  for (const LayerShape& layer : shape.layers) most = std::max<u64>(most, layer.experts);
  return most;
}

Status check_experts(const ModelShape& shape, const ParallelLayout& layout) {
  if (!layout.expert) return ok_status();
  if (most_experts(shape) == 0)
    return Error{
        ErrorCode::bad_input,
        fmt::format("enable-expert-parallel: no layer of {} says how many experts it has; valid for models whose "
                    "config.json, GGUF or --set experts=N does",
                    shape.name)};
  const u64 ranks = u64{layout.tensor} * layout.data;
  for (const LayerShape& layer : shape.layers) {
    if (layer.experts != 0 && layer.experts < ranks)
      return Error{
          ErrorCode::bad_input,
          fmt::format("enable-expert-parallel: {} ranks (tensor x data) are more than the {} experts of a layer", ranks,
                      layer.experts)};
  }
  return ok_status();
}

// Ranks of a stage with as many experts, the first of them.
struct ExpertKind {
  u64 first = 0, ranks = 0;
};

std::vector<ExpertKind> expert_kinds(const ModelShape& shape, const ParallelLayout& layout, std::uint32_t begin,
                                     std::uint32_t layers) {
  const u64 ranks = u64{layout.tensor} * layout.data;
  u64 more = 0;  // ranks with one more, as the layers of a model are alike
  for (std::uint32_t at = begin; layout.expert && at < begin + layers; ++at)
    more = std::max(more, shape.layers[at].experts % ranks);
  if (more == 0) return {{0, ranks}};
  return {{0, more}, {more, ranks - more}};
}

}  // namespace

std::vector<std::uint32_t> stage_layers(std::uint32_t layers, std::uint32_t stages) {
  KV_CHECK(stages >= 1 && stages <= layers, "every stage has a layer");
  std::vector<std::uint32_t> out(stages, layers / stages);
  // As many as stages - 1 remain, so the last but one is the first to take one, and the last takes none.
  for (std::uint32_t more = 0; more < layers % stages; ++more) ++out[stages - 2 - more];
  return out;
}

Status check_layout(const ModelShape& shape, const ParallelLayout& layout) {
  KV_TRY(in_range("tensor-parallel-size", layout.tensor, kMaxParallel));
  KV_TRY(in_range("pipeline-parallel-size", layout.pipeline, kMaxParallel));
  KV_TRY(in_range("data-parallel-size", layout.data, kMaxParallel));
  if (layout.pipeline > shape.layers.size())
    return Error{ErrorCode::bad_input, fmt::format("pipeline-parallel-size {} is more than the {} layers",
                                                   layout.pipeline, shape.layers.size())};
  KV_TRY(divides(layout.tensor, shape.heads, "query heads"));
  for (const LayerShape& layer : shape.layers) KV_TRY(check_layer(layer, layout));
  return check_experts(shape, layout);
}

std::vector<Rank> ranks_of(const ModelShape& shape, const ParallelLayout& layout) {
  std::vector<Rank> out;
  const auto layers = static_cast<std::uint32_t>(shape.layers.size());
  std::uint32_t begin = 0;
  for (const std::uint32_t count : stage_layers(layers, layout.pipeline)) {
    const auto stage = static_cast<std::uint32_t>(out.empty() ? 0 : out.back().stage + 1);
    for (const ExpertKind& kind : expert_kinds(shape, layout, begin, count)) {
      const u64 ranks = u64{layout.tensor} * layout.data;
      const u64 experts =
          layout.expert ? most_experts(shape) / ranks + (kind.first < most_experts(shape) % ranks ? 1 : 0) : 0;
      out.push_back({stage, begin, count, static_cast<std::uint32_t>(experts), kind.first, kind.ranks});
    }
    begin += count;
  }
  return out;
}

}  // namespace kvasir::plan
