// How fast a machine can be with a model at most: the larger of the time to read what a step reads and the time to
// compute what it computes. Thread rule: pure; any thread.
//
//   step time >= max(bytes / bandwidth, operations / peak)
//
// A bound, not a forecast: nothing here knows of launches, communication, or work that does not overlap. `efficiency`
// (1 = the bound itself) scales both rates alike where a person knows what share of them is reached.
//
// A decode step of B sequences of length L reads
//   weights      all but the embedding table, and of the routed experts those that some token chose: with share p =
//   experts a
//                token / experts, each is read with probability 1 - (1 - p)^B (independent, even choices). Where only
//                total and active parameters are published, p = active / total of all weights: exact at B = 1.
//   cache        each sequence's rows (a window's at most) and twice its recurrent state.
// and computes 2 operations a weight that a token uses, and 2 a query head and element of K and of V that it reads (a
// latent is read as both, without its rope part as V). Source: Williams, Waterman, Patterson, "Roofline", CACM 52 (4),
// 2009.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/capacity_plan.hpp"
#include "plan/parallel.hpp"

namespace kvasir::plan {

// Of one device. 0: unknown, that side of the bound is left out.
struct Machine {
  double bandwidth = 0;   // bytes/s
  double peak = 0;        // operations/s
  double efficiency = 1;  // in (0, 1]
};

// What a step takes of one device of a layout, all stages of a pipeline one after another.
struct StepWork {
  double resident_bytes = 0;   // of weights that every step reads
  double routed_bytes = 0;     // of routed experts
  double routed_share = 1;     // chance that a token uses one of them
  double body_operations = 0;  // of weights, a token, without the head
  double head_operations = 0;  // the head's
  std::uint32_t replicas = 1;  // whose tokens an expert here may get
  std::uint32_t heads = 0;     // query heads on the device
  std::uint32_t rope_dim = 0;  // of a latent
  KvGroups kv;                 // on the device

  double weight_bytes(double batch) const;         // read for as many tokens
  double cache_bytes(std::uint64_t length) const;  // read for one
  double operations(std::uint64_t length) const;   // of one token that looks back on as many
};

struct StepTime {
  double bytes = 0, operations = 0;
  double bytes_seconds = 0, operations_seconds = 0;
  double seconds() const { return bytes_seconds > operations_seconds ? bytes_seconds : operations_seconds; }
  bool is_bandwidth_bound() const { return bytes_seconds >= operations_seconds; }
};

// Errors: rank_input's; unsupported if nothing says how many weights there are.
Result<StepWork> step_work(const PlanInput& input, const CapacityPlan& plan, const ParallelLayout& layout);

// batch: sequences of a replica.
StepTime decode_step(const StepWork& work, const Machine& machine, std::uint64_t batch, std::uint64_t length);
// A whole prompt at once, its own rows included.
StepTime prefill(const StepWork& work, const Machine& machine, std::uint64_t prompt);

// The smallest batch that is not bandwidth-bound; none: none up to kMaxRequests is, as where each sequence brings more
// bytes of cache than its operations take time, or a rate is unknown.
std::optional<std::uint64_t> wall_batch(const StepWork& work, const Machine& machine, std::uint64_t length);
// The same without the cache's bytes and operations: the weights' own wall.
std::optional<std::uint64_t> weights_wall_batch(const StepWork& work, const Machine& machine);

// The largest batch whose step takes at most `seconds`; 0: not even one sequence.
std::uint64_t most_batch(const StepWork& work, const Machine& machine, std::uint64_t length, double seconds);

}  // namespace kvasir::plan
