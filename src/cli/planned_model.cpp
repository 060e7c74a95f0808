#include "cli/planned_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "artifact/config_json.hpp"
#include "artifact/gguf_shape.hpp"
#include "artifact/known_models.hpp"
#include "artifact/shape_override.hpp"
#include "cli/loading.hpp"
#include "model/model.hpp"
#include "plan/weights.hpp"

namespace kvasir::cli {
namespace {

bool is_config(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || std::filesystem::path(path).extension() == ".json";
}

// What exists, and what a person would take for a path. "DeepSeek-V3 / R1" and "meta-llama/Llama-3-8B" are names.
bool looks_like_a_path(const std::string& text) {
  std::error_code ignored;
  return std::filesystem::exists(text, ignored) || text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text.ends_with(".gguf") || text.ends_with(".json");
}

// Fields that say how many weights there are: a file holds what it holds.
bool is_about_weights(const std::string& override) {
  const std::string key = override.substr(0, override.find('='));
  return key == "parameters" || key == "active_parameters" || key == "weight_bits";
}

Status override_fields(artifact::ModelShape& shape, const std::vector<std::string>& set) {
  for (const std::string& one : set) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::usage, fmt::format("--set: '{}' is not KEY=VALUE, as kv_heads=8", one)};
    KV_TRY(artifact::override_field(shape, one.substr(0, equals), one.substr(equals + 1)));
  }
  return artifact::check_shape(shape, "--set");
}

Result<PlannedModel> from_file(const std::string& path, const std::vector<std::string>& set) {
  KV_ASSIGN(const artifact::GgufFile file, open_model_file(path));
  for (const std::string& one : set) {
    if (is_about_weights(one))
      return Error{ErrorCode::usage, fmt::format("--set: {} is for models without a file; {} holds its weights", one, path)};
  }
  PlannedModel out;
  KV_ASSIGN(out.shape, artifact::shape_of(file));
  KV_TRY(override_fields(out.shape, set));
  // The engine's own buffers where it can run the file as it is; else those of an engine for such a shape.
  const auto& runs = model::Model::architectures();
  const bool ours = set.empty() && std::find(runs.begin(), runs.end(), out.shape.family) != runs.end();
  if (ours) {
    KV_ASSIGN(out.geometry, artifact::ModelGeometry::from_gguf(file));
  } else {
    out.geometry = plan::engine_geometry(out.shape);
  }
  out.weights = plan::file_weights(file, out.geometry);
  return out;
}

Result<artifact::ModelShape> described(const std::string& model) {
  std::error_code ignored;
  if (looks_like_a_path(model) && !std::filesystem::exists(model, ignored))
    return Error{ErrorCode::bad_input, fmt::format("model file '{}' does not exist", model)};
  if (looks_like_a_path(model)) return artifact::read_config(model);
  return artifact::known_model(model);
}

}  // namespace

Result<PlannedModel> read_planned_model(const std::string& model, const std::vector<std::string>& set) {
  if (looks_like_a_path(model) && !is_config(model)) return from_file(model, set);
  PlannedModel out;
  KV_ASSIGN(out.shape, described(model));
  KV_TRY(override_fields(out.shape, set));
  out.geometry = plan::engine_geometry(out.shape);
  KV_ASSIGN(out.weights, plan::shape_weights(out.shape));
  return out;
}

}  // namespace kvasir::cli
