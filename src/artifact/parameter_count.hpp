// How many weights a shape has, by class: what a planner multiplies with bits a weight.
// Thread rule: pure functions; any thread.
// Biases and the norms of queries and keys are left out: together under 0.2 % of a model (GPT-2, the worst known, 0.1 %).
// Errors: unsupported if no layer gives the width of its feed-forward (known models do not); bad_input if a sum overflows.
#pragma once

#include <cstdint>

#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

struct ParameterCount {
  std::uint64_t embedding = 0;
  std::uint64_t head = 0;          // 0 if tied
  std::uint64_t attention = 0;     // recurrent mixers too
  std::uint64_t feed_forward = 0;  // dense blocks
  std::uint64_t experts = 0;       // routed and shared experts, and what routes to them
  std::uint64_t norms = 0;         // two a layer and one at the end
  std::uint64_t other = 0;         // learned positions and the like

  std::uint64_t total = 0;
  std::uint64_t active = 0;        // of one token: of the routed experts only experts_per_token; total if that is unknown
};

Result<ParameterCount> count_parameters(const ModelShape& shape);

// The total, or 0 if it cannot be counted.
std::uint64_t counted_parameters(const ModelShape& shape);

}  // namespace kvasir::artifact
