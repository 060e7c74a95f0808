// The angles of rotary positions: a frequency for each pair of a head's channels, for each rope that a model's layers use.
// Thread rule: pure; any thread.
// Errors: bad_input naming the factor that is out of range; unsupported, naming what a scaling needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "artifact/geometry.hpp"
#include "base/result.hpp"

namespace kvasir::model {

struct RopeTable {
  std::vector<double> frequencies;   // [dim / 2], radians a position
  double scale = 1;                  // of cosines and sines
};

// The ropes that layers use, each once: that of all history first, then that of layers with a window where it differs.
std::vector<artifact::Rope> ropes_of(const artifact::ModelGeometry& geometry);

// The index in ropes_of() of a layer's rope; nullopt: its heads do not turn.
std::optional<std::uint32_t> rope_index(const artifact::ModelGeometry& geometry, std::uint32_t layer);

// Pair i turns by base^(-2i/dim) a position, changed by the scaling. `factors` divide it (llama3, longrope): one a pair, or
// none. `name`: of their tensor, for messages. The arithmetic is that of transformers' rope functions, in double.
Result<RopeTable> make_rope_table(const artifact::Rope& rope, std::span<const float> factors, const std::string& name);

}  // namespace kvasir::model
