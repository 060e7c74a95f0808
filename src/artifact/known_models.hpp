// Shapes of published models by name, built in: planning needs no file. Facts only (sizes); where they are from is in
// known_models_table.cpp, which scripts/make-known-models writes.
// Thread rule: pure functions over a constant table; any thread.
// The table has no widths of feed-forward blocks and experts: weights are as published, not counted, and the fields of
// LayerShape that hold those widths are 0.
#pragma once

#include <string_view>
#include <vector>

#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// By exact name, else by name without regard to case, punctuation and what stands before a '/' or in brackets
// ("llama 3 8b", "meta-llama/Llama-3-8B", "DeepSeek-R1" of "DeepSeek-V3 / R1").
// Errors: bad_input naming the three nearest names.
Result<ModelShape> known_model(std::string_view name);

// In the table's order: families together, smaller first.
std::vector<std::string_view> known_model_names();

}  // namespace kvasir::artifact
