// Which layer of a config.json does what: full attention, a window, a recurrent mixer, a block without memory. Configs say it
// in a dozen ways; config_pattern.cpp has them in the order in which they are tried.
// Thread rule: a pure function; any thread.
// Errors: bad_input naming the field: a list of the wrong length, an unknown word, a layer named twice or not at all.
#pragma once

#include <cstdint>
#include <vector>

#include "artifact/config_family.hpp"
#include "artifact/config_fields.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

enum class LayerKind : std::uint8_t {
  full,          // attention to all tokens
  window,        // to the last sliding_window tokens
  chunk,         // to those of the same chunk
  linear,        // linear attention: a state
  mamba,         // a state-space mixer: a state
  conv,          // a short convolution: its inputs
  feed_forward,  // no mixer
  experts,       // no mixer
};

// One kind a layer.
Result<std::vector<LayerKind>> layer_kinds(const ConfigFields& fields, const Family& family, std::uint32_t layers);

}  // namespace kvasir::artifact
