// What every layer of a config.json keeps of the past: KV heads and row widths, latents, windows, states.
// Thread rule: a pure function; any thread.
// Errors: bad_input naming file, field, value and what would be valid.
#pragma once

#include "artifact/config_family.hpp"
#include "artifact/config_fields.hpp"
#include "artifact/config_pattern.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Fills the memory fields of shape.layers, shape.heads and the MLA fields. REQUIRES: shape.width, shape.context and
// shape.layers' size are read, one kind a layer.
//
// A window as configs give it (sliding_window) counts the current token: the mask that defines these models keeps the keys
// k > q - window. (Phi-3's config says 2,047 where others say 2,048: the config is taken at its word.) A window as long as
// the context is none.
Status read_memory(const ConfigFields& fields, const Family& family, const std::vector<LayerKind>& kinds, ModelShape& shape);

}  // namespace kvasir::artifact
