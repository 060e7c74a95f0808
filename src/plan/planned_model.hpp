// From the MODEL that a plan is asked of to what the planner starts from: a GGUF (its header alone is read), a Hugging Face
// config.json or a folder with one, or the name of a known model.
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "artifact/geometry.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"
#include "plan/capacity_plan.hpp"

namespace kvasir::plan {

// Whether the argument is a path: something that exists, or what a person would take for one; else it is a known model's name.
// "DeepSeek-V3 / R1" and "meta-llama/Llama-3-8B" are names.
bool looks_like_a_path(const std::string& model);

// Whether the argument is a file of weights: it exists and is neither a folder nor a config.json, whatever it is called.
// Text that begins with '{' is a config.
bool is_weights_file(const std::string& model);

struct PlannedModel {
  artifact::ModelShape shape;
  artifact::ModelGeometry geometry;      // of the engine's buffers
  std::vector<PlanLine> weights;
  std::vector<std::string> warnings;     // of the input, for people
};

// set: "key=value" overrides of the shape's fields; "family=llama" reads a config.json as one of that model_type. Errors: of the file or the name, naming what would be valid; usage for
// an override without '='.
Result<PlannedModel> read_planned_model(const std::string& model, const std::vector<std::string>& set);

}  // namespace kvasir::plan
