// A model's weights as lines of a plan, by class of tensor.
// Thread rule: pure; any thread.
#pragma once

#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"
#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

// Of a file, packed for the kernels as the loader packs it; matrices of experts as the file has them.
std::vector<PlanLine> file_weights(const artifact::GgufFile& file, const artifact::ModelGeometry& geometry);

// Of a shape: its parameters at `weight_bits` each. By class where the shape tells every width, else in one line from the
// number of parameters; none if neither is known. Errors: bad_input if a size overflows.
Result<std::vector<PlanLine>> shape_weights(const artifact::ModelShape& shape);

}  // namespace kvasir::plan
