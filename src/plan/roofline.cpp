#include "plan/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "artifact/parameter_count.hpp"
#include "plan/search.hpp"

namespace kvasir::plan {
namespace {

using artifact::LayerShape;
using artifact::ModelShape;
using artifact::ParameterCount;

double line_bytes(const CapacityPlan& plan, std::string_view name) {
  double sum = 0;
  for (const PlanLine& line : plan.lines) sum += line.name == name ? static_cast<double>(line.bytes) : 0;
  return sum;
}

// Parameters of routed experts, and the chance that a token uses one; 0 where every token uses all.
struct Routed {
  double parameters = 0, share = 1;
};

Routed routed_of(const ModelShape& shape, const Result<ParameterCount>& count) {
  if (count.ok()) {
    double experts = 0;
    for (const LayerShape& layer : shape.layers) experts = std::max<double>(experts, layer.experts);
    const double idle = static_cast<double>(count->total - count->active);
    if (idle <= 0) return {};
    const double share = shape.experts_per_token / experts;
    return {idle / (1 - share), share};
  }
  const auto total = static_cast<double>(shape.parameters), active = static_cast<double>(shape.active_parameters);
  if (active <= 0 || active >= total) return {};
  return {total, active / total};
}

// The bytes of the routed experts in the plan of the whole model.
double routed_bytes(const PlanInput& input, const Result<ParameterCount>& count, const Routed& routed) {
  double all = 0, experts = 0;
  for (const PlanLine& line : input.weights) {
    all += static_cast<double>(line.bytes);
    if (line.name == "weights.experts") experts += static_cast<double>(line.bytes);
  }
  if (experts > 0 && count.ok() && count->experts > 0)
    return experts * routed.parameters / static_cast<double>(count->experts);
  return all * routed.parameters / static_cast<double>(count.ok() ? count->total : input.shape.parameters);
}

// A device's part of the routed experts.
double rank_share(const ParallelLayout& layout) {
  return 1.0 / (layout.expert ? static_cast<double>(layout.tensor) * layout.data : layout.tensor);
}

// Operations of one token's attention in a group: each query head with each element that it reads.
double attention_operations(const PlannedGroup& g, std::uint32_t heads, std::uint32_t rope_dim, double rows) {
  const double k = g.group.head_dim, v = g.group.v_dim.value_or(g.group.head_dim);
  const double read = g.kind == GroupKind::latent && v == 0 ? 2 * k - std::min<double>(rope_dim, k) : k + v;
  const double readers = g.kind == GroupKind::index ? g.group.kv_heads : heads;
  return 2 * readers * static_cast<double>(g.group.layers.size()) * read * rows;
}

// Rows that all tokens of a prompt look back on, each its own: the sum of rows(1) ... rows(prompt).
double rows_of_prompt(const PlannedGroup& g, double prompt) {
  const double merged = g.merged, full = std::floor(prompt / merged);
  const double window = g.group.window == 0 ? full + 1 : g.group.window;
  const double grown = std::min(full, window);  // groups of `merged` tokens that see 1, 2, ... rows
  const double growing = merged * grown * (grown + 1) / 2;
  const double rest = prompt - merged * grown;  // see `window` rows, or the last begun row
  return growing + rest * std::min(window, grown + 1);
}

StepTime time_of(double bytes, double operations, const Machine& machine) {
  StepTime out;
  out.bytes = bytes;
  out.operations = operations;
  if (machine.bandwidth > 0) out.bytes_seconds = bytes / (machine.bandwidth * machine.efficiency);
  if (machine.peak > 0) out.operations_seconds = operations / (machine.peak * machine.efficiency);
  return out;
}

// The smallest batch for which `computes` holds, which holds for every larger one.
template <class Computes>
std::optional<std::uint64_t> smallest(Computes&& computes) {
  const std::uint64_t below =
      *largest(kMaxRequests, [&](std::uint64_t batch) -> Result<bool> { return !computes(batch); });
  if (below == kMaxRequests) return std::nullopt;
  return below + 1;
}

}  // namespace

double StepWork::weight_bytes(double batch) const {
  return resident_bytes + routed_bytes * (1 - std::pow(1 - routed_share, batch * replicas));
}

double StepWork::cache_bytes(std::uint64_t length) const {
  double sum = 2 * static_cast<double>(kv.state_bytes);  // read and written
  for (const PlannedGroup& g : kv.groups)
    sum += static_cast<double>(g.rows(length)) * static_cast<double>(g.layout.bytes_per_token());
  return sum;
}

double StepWork::operations(std::uint64_t length) const {
  double sum = body_operations + head_operations;
  for (const PlannedGroup& g : kv.groups)
    sum += attention_operations(g, heads, rope_dim, static_cast<double>(g.rows(length)));
  return sum;
}

Result<StepWork> step_work(const PlanInput& input, const CapacityPlan& plan, const ParallelLayout& layout) {
  if (plan.weights_bytes == 0)
    return Error{ErrorCode::unsupported,
                 "nothing says how many weights there are, so a step has no bound: --set parameters=70B"};
  // One device of a layout without stages: their times add up to its.
  ParallelLayout flat = layout;
  flat.pipeline = 1;
  KV_ASSIGN(const PlanInput one, rank_input(input, flat, ranks_of(input.shape, flat).front()));
  KV_ASSIGN(const CapacityPlan held, plan_capacity(one));
  const Result<ParameterCount> count = artifact::count_parameters(input.shape);
  const Routed routed = routed_of(input.shape, count);
  const ModelShape& shape = input.shape;

  StepWork out;
  out.kv = held.kv;
  out.heads = one.shape.heads;
  out.rope_dim = shape.rope_dim;
  out.replicas = layout.expert ? layout.data : 1;
  out.routed_share = routed.share;
  out.routed_bytes = routed.parameters > 0 ? routed_bytes(input, count, routed) * rank_share(layout) : 0;
  const double table = static_cast<double>(shape.vocabulary) * shape.width;
  const double embedding_bytes = line_bytes(held, "weights.embedding");
  const double unread = shape.tied_head       ? 0
                        : embedding_bytes > 0 ? embedding_bytes
                                              : table * shape.weight_bits / 8 / layout.tensor;
  out.resident_bytes = std::max(0.0, static_cast<double>(held.weights_bytes) - out.routed_bytes - unread);

  double active = count.ok()
                      ? static_cast<double>(count->active)
                      : static_cast<double>(shape.active_parameters > 0 ? shape.active_parameters : shape.parameters);
  if (!shape.tied_head) active -= std::min(active, table);  // a look-up
  out.head_operations = 2 * std::min(active, table) / layout.tensor;
  out.body_operations = 2 * active / layout.tensor - out.head_operations;
  return out;
}

StepTime decode_step(const StepWork& work, const Machine& machine, std::uint64_t batch, std::uint64_t length) {
  const auto b = static_cast<double>(batch);
  return time_of(work.weight_bytes(b) + b * work.cache_bytes(length), b * work.operations(length), machine);
}

StepTime prefill(const StepWork& work, const Machine& machine, std::uint64_t prompt) {
  const auto tokens = static_cast<double>(prompt);
  double operations = tokens * work.body_operations + work.head_operations;  // one row of logits
  for (const PlannedGroup& g : work.kv.groups)
    operations += attention_operations(g, work.heads, work.rope_dim, rows_of_prompt(g, tokens));
  return time_of(work.weight_bytes(tokens) + work.cache_bytes(prompt), operations, machine);
}

std::optional<std::uint64_t> wall_batch(const StepWork& work, const Machine& machine, std::uint64_t length) {
  if (machine.bandwidth <= 0 || machine.peak <= 0) return std::nullopt;
  return smallest([&](std::uint64_t batch) { return !decode_step(work, machine, batch, length).is_bandwidth_bound(); });
}

std::optional<std::uint64_t> weights_wall_batch(const StepWork& work, const Machine& machine) {
  StepWork alone = work;
  alone.kv = {};
  return wall_batch(alone, machine, 1);
}

std::uint64_t most_batch(const StepWork& work, const Machine& machine, std::uint64_t length, double seconds) {
  return *largest(kMaxRequests, [&](std::uint64_t batch) -> Result<bool> {
    return decode_step(work, machine, batch, length).seconds() <= seconds;
  });
}

}  // namespace kvasir::plan
