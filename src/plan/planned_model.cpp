#include "plan/planned_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "artifact/config_json.hpp"
#include "artifact/gguf_shape.hpp"
#include "artifact/known_models.hpp"
#include "artifact/shape_override.hpp"
#include "model/footprint.hpp"
#include "plan/weights.hpp"

namespace kvasir::plan {
namespace {

constexpr int kMostSpace = 4096;   // bytes of white space looked through for a config's first brace

// Text that begins with an object, after white space and a byte order mark.
bool begins_as_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  int c = file.get();
  if (c == 0xef && file.get() == 0xbb && file.get() == 0xbf) c = file.get();
  for (int skipped = 0; skipped < kMostSpace && (c == ' ' || c == '\t' || c == '\r' || c == '\n'); ++skipped) c = file.get();
  return c == '{';
}

bool is_config(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || std::filesystem::path(path).extension() == ".json") return true;
  return std::filesystem::is_regular_file(path, ignored) && begins_as_json(path);
}

// Fields that say how many weights there are: a file holds what it holds.
bool is_about_weights(const std::string& override) {
  const std::string key = override.substr(0, override.find('='));
  return key == "parameters" || key == "active_parameters" || key == "weight_bits";
}

constexpr std::string_view kFamily = "family=";

// The value of the last --set family=, "" if there is none; and the others.
struct Overrides {
  std::string family;
  std::vector<std::string> fields;
};

Overrides split(const std::vector<std::string>& set) {
  Overrides out;
  for (const std::string& one : set) {
    if (one.starts_with(kFamily)) out.family = one.substr(kFamily.size());
    else out.fields.push_back(one);
  }
  return out;
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

Status require_there(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return ok_status();
  return Error{ErrorCode::bad_input, fmt::format("model file '{}' does not exist", path)};
}

Result<PlannedModel> from_file(const std::string& path, const std::vector<std::string>& set) {
  KV_TRY(require_there(path));
  KV_ASSIGN(const artifact::GgufFile file, artifact::GgufFile::open(path));
  for (const std::string& one : set) {
    if (is_about_weights(one))
      return Error{ErrorCode::usage, fmt::format("--set: {} is for models without a file; {} holds its weights", one, path)};
  }
  PlannedModel out;
  KV_ASSIGN(out.shape, artifact::shape_of(file));
  KV_TRY(override_fields(out.shape, set));
  // The engine's own buffers where it can run the file as it is; else those of an engine for such a shape.
  const bool ours = set.empty() && model::has_forward_pass(out.shape.family);
  if (ours) {
    KV_ASSIGN(out.geometry, artifact::ModelGeometry::from_gguf(file));
  } else {
    out.geometry = engine_geometry(out.shape);
  }
  out.weights = file_weights(file, out.geometry);
  if (!set.empty())
    out.warnings.push_back(fmt::format("--set {} changes cache and buffers; the weights stay those of the file", set.front()));
  return out;
}

Result<artifact::ModelShape> described(const std::string& model, const std::string& family) {
  if (!looks_like_a_path(model)) return artifact::known_model(model);
  KV_TRY(require_there(model));
  return artifact::read_config(model, family);
}

}  // namespace

bool looks_like_a_path(const std::string& text) {
  std::error_code ignored;
  return std::filesystem::exists(text, ignored) || text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text.ends_with(".gguf") || text.ends_with(".json");
}

bool is_weights_file(const std::string& model) {
  std::error_code ignored;
  return std::filesystem::exists(model, ignored) && !is_config(model);
}

Result<PlannedModel> read_planned_model(const std::string& model, const std::vector<std::string>& set) {
  const Overrides overrides = split(set);
  const bool is_path = looks_like_a_path(model);
  if (!overrides.family.empty() && !(is_path && is_config(model)))
    return Error{ErrorCode::usage, fmt::format("--set: family is for reading a config.json; {} says itself what it is", model)};
  if (is_path && !is_config(model)) return from_file(model, set);
  PlannedModel out;
  KV_ASSIGN(out.shape, described(model, overrides.family));
  KV_TRY(override_fields(out.shape, overrides.fields));
  out.geometry = engine_geometry(out.shape);
  KV_ASSIGN(out.weights, shape_weights(out.shape));
  return out;
}

}  // namespace kvasir::plan
