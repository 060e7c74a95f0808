#include "cli/plan_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.hpp"
#include "report/numbers.hpp"

namespace kvasir::cli {
namespace {

using artifact::LayerShape;
using artifact::Memory;
using Warnings = std::vector<std::string>;

constexpr std::uint32_t kGroupedHeads = 8;  // what most models with grouped heads have
constexpr double kWorthSaying = 1.05;       // times as much

// The cache of the same question about another shape; 0 if that has none.
std::uint64_t kv_bytes_of(const plan::PlanInput& input, artifact::ModelShape shape) {
  plan::PlanInput other = input;
  other.geometry = plan::engine_geometry(shape);
  other.shape = std::move(shape);
  const Result<plan::CapacityPlan> plan = plan::plan_capacity(other);
  return plan.ok() ? plan->kv_bytes : 0;
}

void warn_of_heads(const Planned& planned, Warnings& out) {
  artifact::ModelShape grouped = planned.input.shape;
  bool changed = false;
  for (LayerShape& layer : grouped.layers) {
    if (layer.memory != Memory::attention || layer.kv_heads != grouped.heads || layer.kv_heads <= kGroupedHeads ||
        layer.kv_heads % kGroupedHeads != 0)
      continue;
    layer.kv_heads = kGroupedHeads;
    changed = true;
  }
  const std::uint64_t less = changed ? kv_bytes_of(planned.input, std::move(grouped)) : 0;
  if (less == 0) return;
  out.push_back(
      fmt::format("every one of {} query heads has KV of its own: a model with {} KV heads would keep {} instead of {}",
                  planned.input.shape.heads, kGroupedHeads, format_bytes(less), format_bytes(planned.plan.kv_bytes)));
}

void warn_of_windows(const Planned& planned, Warnings& out) {
  artifact::ModelShape without = planned.input.shape;
  bool changed = false;
  for (LayerShape& layer : without.layers) {
    changed = changed || (layer.window != 0 && layer.memory != Memory::recurrent);
    layer.window = 0;
  }
  const std::uint64_t all = changed ? kv_bytes_of(planned.input, std::move(without)) : 0;
  if (static_cast<double>(all) < kWorthSaying * static_cast<double>(planned.plan.kv_bytes)) return;
  out.push_back(fmt::format("where windows are ignored the cache takes {} instead of {}", format_bytes(all),
                            format_bytes(planned.plan.kv_bytes)));
}

void warn_of_scales(const Planned& planned, Warnings& out) {
  const format::KvFormat format = planned.input.kv.format;
  const bool e4m3 = format.k == format::KvType::fp8_e4m3 || format.v == format::KvType::fp8_e4m3;
  const bool e5m2 = format.k == format::KvType::fp8_e5m2 || format.v == format::KvType::fp8_e5m2;
  if (!e4m3 && !e5m2) return;
  out.push_back(
      fmt::format("8-bit floats without calibrated scales: engines take 1.0, and larger values than {} are lost",
                  e4m3 ? "448 (e4m3)" : "57344 (e5m2)"));
}

// What does not fit, and why people thought it would.
void warn_of_memory(const Planned& planned, Warnings& out) {
  const std::uint64_t memory = planned.device.memory;
  if (!planned.fit) return;
  const plan::CapacityPlan& plan =
      planned.device.parallel ? planned.device.parallel->ranks[planned.device.parallel->worst].plan : planned.plan;
  const std::uint64_t cache = plan.kv_bytes + plan.state_bytes;
  if (!planned.fit->fits && plan.weights_bytes > 0 && plan.weights_bytes <= memory) {
    out.push_back(fmt::format("the weights alone ({}) fit in {}; the cache ({}) does not fit beside them",
                              format_bytes(plan.weights_bytes), format_bytes(memory), format_bytes(cache)));
  }
  if (!planned.fit->fits && planned.fit->max_sequences > 0) {
    out.push_back(fmt::format("a sequence of this length fits, the {} asked do not: the cache is {} each",
                              report::format_count(planned.input.requests),
                              format_bytes(planned.plan.kv_bytes / planned.input.requests)));
  }
  const std::uint64_t longest = planned.fit->longest_length.value_or(0);
  if (longest > 0 && longest < planned.input.shape.context && plan.kv_bytes_per_token > 0) {
    out.push_back(fmt::format(
        "each token of {} takes {} more: the memory is full at a length of {}, below the {} of the model",
        report::format_counted(planned.input.requests, "sequence"), format_bytes(plan.kv_bytes_per_token),
        report::format_count(longest), report::format_count(planned.input.shape.context)));
  }
}

void warn_of_layout(const Planned& planned, Warnings& out) {
  if (!planned.device.parallel) return;
  const plan::ParallelPlan& parallel = *planned.device.parallel;
  if (parallel.kv_copies == 1) return;
  out.push_back(fmt::format(
      "tensor-parallel-size {} is beyond the model's {} KV head{}: each lies on {} devices, and a device keeps {} a "
      "token as it would at {}",
      parallel.layout.tensor, parallel.kv_heads, parallel.kv_heads == 1 ? "" : "s", parallel.kv_copies,
      format_bytes(parallel.ranks[parallel.worst].plan.kv_bytes_per_token), parallel.kv_heads));
}

void warn_of_speed(const Planned& planned, Warnings& out) {
  if (!planned.device.speed) return;
  const Speed& speed = *planned.device.speed;
  const std::uint64_t length = speed.length, fitting = planned.fit ? planned.fit->max_sequences : 0;
  const auto rate = [&](std::uint64_t batch) {
    return static_cast<double>(batch) / plan::decode_step(speed.work, speed.machine, batch, length).seconds();
  };
  const double gain = rate(2 * speed.batch) / rate(speed.batch);
  if (speed.batch > 1 && gain < 1.9) {
    out.push_back(fmt::format(
        "twice the tokens is not twice the speed: {} sequences give {:.2f} times the tokens a second of {}, at best",
        report::format_count(2 * speed.batch), gain, report::format_count(speed.batch)));
  }
  if (!speed.most_batch || !planned.fit) return;
  const plan::ParallelLayout& layout = planned.device.layout;
  const std::uint64_t streams = *speed.most_batch * layout.data * layout.pipeline;
  const std::uint64_t within = streams / planned.input.branches.per_request;
  // Of the whole layout, as max_sequences is; each with its branches.
  const char* noun = planned.input.branches.per_request > 1 ? "request" : "sequence";
  if (fitting > within) {
    out.push_back(fmt::format("memory has room for {}, but of more than {} a step takes longer than asked: latency is the limit",
                              report::format_counted(fitting, noun), report::format_count(within)));
  } else if (fitting < within) {
    out.push_back(fmt::format("steps of {} would be in time, but memory has room for {}: memory is the limit",
                              report::format_counted(within, noun), report::format_count(fitting)));
  }
}

}  // namespace

Warnings plan_warnings(const Planned& planned) {
  Warnings out;
  if (!planned.mix) {   // what a mix holds is known for its own groups alone
    warn_of_heads(planned, out);
    warn_of_windows(planned, out);
  }
  warn_of_scales(planned, out);
  warn_of_memory(planned, out);
  warn_of_layout(planned, out);
  warn_of_speed(planned, out);
  return out;
}

}  // namespace kvasir::cli
