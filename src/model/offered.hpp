// What of a model file has no forward pass here, and is refused before a weight is read.
// Thread rule: pure; any thread.
#pragma once

#include "artifact/geometry.hpp"
#include "artifact/gguf.hpp"
#include "base/result.hpp"

namespace kvasir::model {

// Errors: unsupported, naming the key, its value and what is offered; bad_input where a scaling lacks a number it needs.
Status check_offered(const artifact::GgufFile& file, const artifact::ModelGeometry& geometry);

}  // namespace kvasir::model
