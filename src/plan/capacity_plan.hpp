// The memory a model needs to serve so many sequences of a length: a line for each thing that takes memory, and their sum.
// Thread rule: pure; any thread.
//
//   total_bytes = sum of lines = weights_bytes + kv_bytes + state_bytes + everything else, each line once
//                         (branches and drafts, the engine's buffers, a GPU's runtime, a reserve)
//   kv_bytes    = blocks of all sequences; kv_payload_bytes <= kv_bytes is what their rows take in them
//   cache_bytes = kv_bytes + state_bytes + a step's rows beside windows + branches + drafts: everything that sequences store
//
// Every number comes from the footprint function of the layer that allocates it; nothing here multiplies layers by heads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"
#include "plan/kv_groups.hpp"

namespace kvasir::plan {

inline constexpr std::uint64_t kMaxRequests = 1u << 20;
inline constexpr std::uint64_t kMaxLength = (1u << 31) - 1;   // positions are int32

// A share of a line; the parts of a line that has any add up to it.
struct PlanPart {
  std::string name;
  std::uint64_t bytes = 0;
};

struct PlanLine {
  std::string name;    // "weights.attention", "kv.full", "activations" ...: stable, for programs
  std::uint64_t bytes = 0;
  std::string how;     // the sum in words
  std::string field;   // which field of the model or which option said so
  std::vector<PlanPart> parts = {};   // kv.* of one length: "values" (of a latent "latent", "rope"), "scales", "rounding"
  // Where only a range is known: its low end. `bytes` is the high one. Same as `bytes` where exact.
  std::optional<std::uint64_t> low_bytes = {};
};

// Sequences of a request beside the first: n samples or beams, and rows for draft tokens.
struct Branches {
  std::uint32_t per_request = 1;      // of the same prompt
  std::uint64_t prompt_length = 0;    // tokens they have in common; their full blocks are stored once
  std::uint32_t speculative_tokens = 0;   // rows a sequence holds for a draft until it is checked
};

// What all sequences hold together, where they are not all of one length (mix_capacity.hpp).
struct HeldRows {
  std::vector<std::uint64_t> blocks;   // of each group
  std::uint64_t payload_bytes = 0;
};

struct PlanInput {
  artifact::ModelShape shape;
  artifact::ModelGeometry geometry;   // of the engine's buffers: from the file, or engine_geometry(shape)
  std::vector<PlanLine> weights;      // weights.hpp
  KvChoice kv;
  std::uint64_t requests = 1;         // sequences held at once
  std::uint64_t length = 0;           // tokens of each, prompt and answer; with `held` the longest allowed
  std::optional<HeldRows> held;       // none: requests x length
  Branches branches;                  // with `held`: none
  std::vector<PlanLine> fixed;        // whatever requests and length: a GPU's runtime, a reserve
  std::uint32_t batched_tokens = 512; // of one step, or as many as requests if they are more
  std::uint32_t threads = 2;
};

struct CapacityPlan {
  std::vector<PlanLine> lines;
  KvGroups kv;
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0, kv_payload_bytes = 0;
  std::uint64_t kv_bytes_per_token = 0;   // one more token of a long sequence
  std::uint64_t state_bytes = 0;          // recurrent layers, all sequences
  std::uint64_t cache_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// The geometry by which an engine's buffers would be sized for a model it does not run.
artifact::ModelGeometry engine_geometry(const artifact::ModelShape& shape);

// Whether the plan's total is at most `memory`. What cannot be planned for its size does not fit either.
Result<bool> plan_fits(const PlanInput& input, std::uint64_t memory);

// Errors: bad_input naming requests, length or the prompt's, its value and what is valid; a size that overflows; the layouts'.
Result<CapacityPlan> plan_capacity(const PlanInput& input);

// Whether it can be said what fits in a memory. Errors: bad_input if nothing says how many weights there are.
Status check_weights_known(const PlanInput& input);

// REQUIRES of both: no input.held.
// Most sequences of input.length tokens that `memory` bytes serve; 0: not even one. input.requests does not count.
Result<std::uint64_t> most_requests(const PlanInput& input, std::uint64_t memory);
// Longest sequences, in tokens, of which `memory` bytes serve input.requests; 0: not even one token. At most the model's
// context, or input.length if that is more.
Result<std::uint64_t> longest_length(const PlanInput& input, std::uint64_t memory);

}  // namespace kvasir::plan
