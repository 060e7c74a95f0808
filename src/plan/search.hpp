// The edge of what fits: bisection over whole numbers, and over the two that every plan is asked for.
// Thread rule: pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

// The largest value in [1, most] for which `fits` holds, 0 if none; `fits` holds below any value it holds for.
// fits: std::uint64_t -> Result<bool>.
template <class Fits>
Result<std::uint64_t> largest(std::uint64_t most, Fits&& fits) {
  std::uint64_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    KV_ASSIGN(const bool fit, fits(middle));
    (fit ? good : bad) = middle;
  }
  return good;
}

// total: bytes of a plan. What cannot be planned for its size does not fit either.
inline Result<bool> at_most(Result<std::uint64_t> total, std::uint64_t memory) {
  if (total.ok()) return *total <= memory;
  if (total.error().code == ErrorCode::bad_input) return false;
  return std::move(total).error();
}

// Most requests, and longest length, of an input that fits: const PlanInput& -> Result<bool>. No longer than the model was
// trained for, unless the input asks for more already. REQUIRES: no input.held.
template <class Fits>
Result<std::uint64_t> largest_requests(PlanInput input, Fits&& fits) {
  return largest(kMaxRequests, [&](std::uint64_t requests) {
    input.requests = requests;
    return fits(input);
  });
}
template <class Fits>
Result<std::uint64_t> largest_length(PlanInput input, Fits&& fits) {
  const std::uint64_t most = std::max<std::uint64_t>(input.shape.context, input.length);
  return largest(std::min(most, kMaxLength), [&](std::uint64_t length) {
    input.length = length;
    input.branches.prompt_length = std::min(input.branches.prompt_length, length);
    return fits(input);
  });
}

}  // namespace kvasir::plan
