// How a config.json's weights are stored, and the weights outside its layers.
// Thread rule: pure functions; any thread.
// Errors: bad_input naming file, field, value and what would be valid.
#pragma once

#include "artifact/config_family.hpp"
#include "artifact/config_fields.hpp"
#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// Bits of a weight in most matrices: those of the quantization with its scales (groups of 16-bit scale and zero), else of the
// type; 16 if neither is given. `quantized`, `dtype`, `torch_dtype`: the fields that may hold the field of that name.
Result<double> read_weight_bits(const ConfigFields& quantized, const ConfigFields& dtype, const ConfigFields& torch_dtype,
                                ConfigFields::Notes& notes);

// Fills other_parameters: learned positions (GPT-2, OPT ...), embeddings of each layer (Gemma 3n). REQUIRES: width, context and
// layers are read.
Status read_other_weights(const ConfigFields& fields, const Family& family, ModelShape& shape);

}  // namespace kvasir::artifact
