// Rotary positions as a GGUF file gives them: how its layers rotate, and which layer rotates how.
// Thread rule: pure; any thread.
// Errors: bad_input naming key and value; unsupported for a scaling that has no place here, with the reason.
#pragma once

#include <cstdint>

#include "artifact/geometry.hpp"
#include "artifact/gguf_keys.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// The rope of layers that look at all of history. `head_dim`: where the file does not say how much of a head turns.
Result<Rope> read_rope(const GgufKeys& keys, std::uint32_t head_dim);

// The rope of layers with a window, made of that of the others.
Result<Rope> read_window_rope(const GgufKeys& keys, const Rope& rope);

// Whether queries and keys of a layer turn at all.
bool layer_rotates(std::string_view architecture, std::uint32_t layer);

}  // namespace kvasir::artifact
