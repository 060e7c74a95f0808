// A model's shape from its Hugging Face config.json: any decoder whose fields have the names that the field uses, multimodal
// ones by their language model (text_config). Families with fields of their own are known by model_type
// (config_family.hpp); an unknown model_type with the usual fields is a plain transformer.
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
Result<ModelShape> shape_from_config(std::string_view json_text, std::string_view source_name);

// `path`: a config.json, or a folder with one.
Result<ModelShape> read_config(const std::string& path);

}  // namespace kvasir::artifact
