// A model over several devices: what each of them holds. Planned only; the engine here runs on one.
// Thread rule: pure; any thread.
//
// devices = data x pipeline x tensor. Rules, as vLLM has them (its options have the same names):
//   tensor    query heads, feed-forward widths, vocabulary rows and recurrent channels are cut in `tensor` parts. KV
//   heads too,
//             up to their number; beyond it each lies on tensor / heads devices. A latent has one head: it lies on all.
//             Norms, routers, down-projections of latents and indexers lie on all.
//   pipeline  layers are cut in stages; of a remainder each stage gets one more, from the last but one backwards, for
//   the last
//             has the head to do (vllm/distributed/utils.py, get_pp_indices). The first has the embedding, the last the
//             head; where they are tied, both have it.
//   data      whole replicas with a part of the requests each.
//   experts   (expert) whole experts over tensor x data; the first ranks have one more each where that does not divide
//             (determine_expert_map). Else their widths are cut in `tensor` parts.
// Vocabulary rows are rounded up where they do not divide; other counts that do not are refused.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

inline constexpr std::uint32_t kMaxParallel = 1024;

struct ParallelLayout {
  std::uint32_t tensor = 1, pipeline = 1, data = 1;
  bool expert = false;
  std::uint64_t devices() const { return std::uint64_t{tensor} * pipeline * data; }
  bool is_one() const { return devices() == 1; }
};

// What the devices of one kind hold: all tensor ranks of a stage, or those with as many experts.
struct Rank {
  std::uint32_t stage = 0;
  std::uint32_t first_layer = 0, layers = 0;
  std::uint32_t experts = 0;      // of a layer; 0: none or cut by width
  std::uint64_t expert_rank = 0;  // of the first of them
  std::uint64_t devices = 0;      // in the whole layout
};

struct RankPlan {
  Rank rank;
  CapacityPlan plan;  // of one device
};

struct ParallelPlan {
  ParallelLayout layout;
  std::vector<RankPlan> ranks;  // by stage
  std::size_t worst = 0;        // the one that takes most
  std::uint64_t requests = 0;   // of a replica
  std::uint32_t kv_heads = 0;   // most of a layer, whole model
  std::uint32_t kv_copies = 1;  // devices of a replica's stage that hold the same KV head, at most
};

// Layers of each stage. REQUIRES: 1 <= stages <= layers.
std::vector<std::uint32_t> stage_layers(std::uint32_t layers, std::uint32_t stages);

// Errors: bad_input naming the option, its value and the count of the model that it does not divide.
Status check_layout(const artifact::ModelShape& shape, const ParallelLayout& layout);

// The kinds of devices. REQUIRES: check_layout.
std::vector<Rank> ranks_of(const artifact::ModelShape& shape, const ParallelLayout& layout);

// What one device of a rank holds, as a model of its own: planned by the same functions as a whole one.
// Errors: of count_parameters, but for unknown widths: then the weights outside embedding, head and attention are cut
// evenly.
Result<PlanInput> rank_input(const PlanInput& input, const ParallelLayout& layout, const Rank& rank);

// input.requests and input.length are of the whole layout. Errors: check_layout's, plan_capacity's.
Result<ParallelPlan> plan_parallel(const PlanInput& input, const ParallelLayout& layout);

// As capacity_plan.hpp's, with `memory` bytes on each device.
Result<std::uint64_t> most_requests(const PlanInput& input, const ParallelLayout& layout, std::uint64_t memory);
Result<std::uint64_t> longest_length(const PlanInput& input, const ParallelLayout& layout, std::uint64_t memory);

}  // namespace kvasir::plan
