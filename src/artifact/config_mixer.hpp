// The recurrent mixers of a config.json: which one, its state and its weights.
// Thread rule: a pure function; any thread.
// Errors: bad_input naming file, field, value and what would be valid.
#pragma once

#include "artifact/config_fields.hpp"
#include "artifact/config_pattern.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Fills state and weights of the layers whose kind is linear, mamba or conv. All elements of a state are counted at the width of
// the widest (a convolution's inputs may be narrower).
Status read_mixers(const ConfigFields& fields, const std::vector<LayerKind>& kinds, ModelShape& shape);

}  // namespace kvasir::artifact
