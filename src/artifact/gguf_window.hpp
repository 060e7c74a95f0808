// Which layers of a GGUF file have its sliding window: the one table, for the engine's geometry and the planner's shape.
// Thread rule: pure; any thread.
// Errors: bad_input naming key and value (a pattern of the wrong length or above what is valid).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifact/gguf_keys.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Layers with a window, of a file that names a window: by `attention.sliding_window_pattern` (a number n: every layer but
// each n-th; a list: those that are true), else as the architecture has them. nullopt: neither says which.
Result<std::optional<std::vector<bool>>> window_layers(const GgufKeys& keys, std::uint32_t layers);

}  // namespace kvasir::artifact
