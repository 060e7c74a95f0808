// A model's shape from its GGUF header. Of an architecture that the engine runs it is exactly what the engine allocates: the
// same geometry gives each layer its KV heads and its window.
// Thread rule: pure functions; any thread.
// Errors: those of ModelGeometry::from_gguf, and bad_input naming key, value and what would be valid for the keys read here.
#pragma once

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// `geometry` is that of `file`. Windows: where the geometry has them (gguf_window.hpp). Experts: from the
// expert_* keys. A layer without KV heads has a state if the file gives its sizes (ssm.*), else keeps nothing.
Result<ModelShape> shape_of(const GgufFile& file, const ModelGeometry& geometry);

// Any file: one with latents (attention.kv_lora_rank), which ModelGeometry does not represent, from its metadata alone; others as
// above.
Result<ModelShape> shape_of(const GgufFile& file);

}  // namespace kvasir::artifact
