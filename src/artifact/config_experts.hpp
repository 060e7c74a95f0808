// The feed-forward blocks of a config.json: dense widths, experts, and which layer has which. Their names differ by family;
// config_experts.cpp has them all.
// Thread rule: a pure function; any thread.
// Errors: bad_input naming file, field, value and what would be valid.
#pragma once

#include "artifact/config_family.hpp"
#include "artifact/config_fields.hpp"
#include "artifact/config_pattern.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Fills feed_forward, experts, shared_experts and expert_width of shape.layers, and shape.experts_per_token and gated.
// REQUIRES: shape.width is read, one kind a layer. A width that the config does not give stays 0.
// A shared expert that is no multiple of an expert counts as a dense block beside the experts.
Status read_feed_forward(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds,
                         ModelShape& shape);

}  // namespace kvasir::artifact
