// A model's shape from its Hugging Face config.json: any decoder whose fields have the names that the field uses, multimodal
// ones by their language model (text_config). Families are known by model_type (config_family.hpp): an unknown one is refused,
// since its layers may keep what its fields do not say; a file without one is a plain transformer, and said to be unverified.
// Thread rule: pure functions; any thread.
// Errors: bad_input as "FILE: field 'NAME' is VALUE; valid: ...", for contradictions, wrong types, sizes beyond shape_limits and
// files beyond config_text.hpp's limits; unsupported for encoder-decoders; io for files that cannot be read.
#pragma once

#include <string>
#include <string_view>

#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

// `source_name` opens messages. Weights are counted where the fields suffice (parameter_count.hpp).
// family: read as a config of this model_type; "" = of its own.
Result<ModelShape> shape_from_config(std::string_view json_text, std::string_view source_name, std::string_view family = "");

// `path`: a config.json, or a folder with one.
Result<ModelShape> read_config(const std::string& path, std::string_view family = "");

}  // namespace kvasir::artifact
