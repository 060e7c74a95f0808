// Inputs of plans for the shapes of tests.
#pragma once

#include <cstdint>
#include <utility>

#include "plan/capacity_plan.hpp"
#include "plan/weights.hpp"

namespace kvasir::plan::test {

// Without weights.
inline PlanInput input_of(artifact::ModelShape shape, std::uint64_t requests, std::uint64_t length) {
  PlanInput input;
  input.geometry = engine_geometry(shape);
  input.shape = std::move(shape);
  input.requests = requests;
  input.length = length;
  return input;
}

// REQUIRES: the shape's weights can be counted.
inline PlanInput weighed_input(artifact::ModelShape shape, std::uint64_t requests, std::uint64_t length) {
  PlanInput input = input_of(std::move(shape), requests, length);
  input.weights = *shape_weights(input.shape);
  return input;
}

}  // namespace kvasir::plan::test
