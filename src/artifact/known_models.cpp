#include "artifact/known_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "artifact/config_family.hpp"
#include "artifact/known_models_table.hpp"
#include "base/suggestion.hpp"

namespace kvasir::artifact {
namespace {

constexpr std::size_t kMaxNameBytes = 200;  // longer ones are no model's, and suggestions cost the product of lengths

std::string_view without_brackets(std::string_view name) { return name.substr(0, name.find(" (")); }

// All the names of a row, plain: "A-X / Y" is also A-X, Y and A-Y; "X (and Y)" is also X and Y; "X (size)" is also X.
std::vector<std::string> aliases(std::string_view name) {
  std::vector<std::string> all{plain_name(name)};
  constexpr std::string_view kAnd = " (and ", kOr = " / ";
  if (const auto at = name.find(kAnd); at != std::string_view::npos) all.push_back(plain_name(name.substr(at + kAnd.size())));
  const std::string_view first = without_brackets(name);
  if (const auto at = first.find(kOr); at != std::string_view::npos) {
    const std::string_view other = first.substr(at + kOr.size());
    all.push_back(plain_name(first.substr(0, at)));
    all.push_back(plain_name(other));
    all.push_back(plain_name(fmt::format("{}-{}", first.substr(0, first.find('-')), other)));
  } else {
    all.push_back(plain_name(first));
  }
  return all;
}

const KnownModel* find_row(std::string_view name) {
  for (const KnownModel& row : known_model_rows())
    if (row.name == name) return &row;
  const std::string wanted = plain_name(name);
  const std::string last = plain_name(name.substr(name.rfind('/') + 1));
  for (const std::string& candidate : {wanted, last})
    for (const KnownModel& row : known_model_rows()) {
      const std::vector<std::string> names = aliases(row.name);
      if (std::find(names.begin(), names.end(), candidate) != names.end()) return &row;
    }
  return nullptr;
}

Error unknown(std::string_view name) {
  std::vector<std::string> spelled;
  for (const KnownModel& row : known_model_rows()) spelled.push_back(plain_name(without_brackets(row.name)));
  std::string nearest;
  for (const std::string& near : nearest_few(plain_name(name.substr(0, kMaxNameBytes)), spelled, 3)) {
    const auto at = static_cast<std::size_t>(std::find(spelled.begin(), spelled.end(), near) - spelled.begin());
    nearest += fmt::format("{}'{}'", nearest.empty() ? "" : ", ", known_model_rows()[at].name);
  }
  return Error{ErrorCode::bad_input,
               fmt::format("model '{}' is not known; the nearest of {} that are: {}", name.substr(0, kMaxNameBytes),
                           known_model_rows().size(), nearest)};
}

void set_rows(LayerShape& layer, const KnownRows& rows, std::uint32_t window) {
  layer.kv_heads = rows.kv_heads;
  layer.k_dim = rows.k_dim;
  layer.v_dim = rows.v_dim;
  layer.window = window;
}

void set_latent(LayerShape& layer, const KnownModel& row, char letter) {
  layer.memory = Memory::latent;
  layer.kv_heads = 1;
  layer.k_dim = row.latent;
  if (letter == 'l' || letter == 'i') layer.index_dim = row.index_dim;
  if (letter == 'W') layer.window = row.window;
  if (letter != 'i' && letter != 'j') return;
  layer.merged = row.merged[letter == 'i' ? 0 : 1];
  layer.recent = row.window;
}

LayerShape layer_of(const KnownModel& row, char letter) {
  LayerShape layer;
  switch (letter) {
    case 'f': set_rows(layer, row.full, 0); break;
    case 'w': set_rows(layer, row.windowed, row.window); break;
    case 'c':
      set_rows(layer, row.windowed, row.window);
      layer.chunked = true;
      break;
    case 'r':
      layer.memory = Memory::recurrent;
      layer.state_elements = state_elements(row.recurrent, row.width);
      layer.state_bytes = row.state_bytes != 0 ? row.state_bytes : default_state_bytes(row.recurrent.mixer);
      layer.mixer_parameters = mixer_parameters(row.recurrent, row.width);
      break;
    case 'n': layer.memory = Memory::none; break;
    default: set_latent(layer, row, letter);
  }
  return layer;
}

// The table's own field names, as people say them; a remark in parentheses stays.
std::string in_words(std::string_view field) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"params_b", "the number of parameters"},
      {"active_params_b", "how many parameters a token uses"},
      {"tied_embeddings", "whether head and embedding are one matrix"},
      {"max_context", "the longest context"},
      {"kv_heads", "the number of KV heads"},
      {"attention.full_layer_ids", "which layers keep everything"},
      {"attention.linear", "the sizes of linear layers"},
      {"attention.linear.state", "the state of linear layers"}};
  const std::string_view name = field.substr(0, field.find(" ("));
  for (const auto& [key, words] : kWords) {
    if (key == name) return fmt::format("{}{}", words, field.substr(name.size()));
  }
  return std::string(field);
}

ModelShape shape_of(const KnownModel& row) {
  ModelShape shape;
  shape.name = row.name;
  shape.family = row.family;
  shape.width = row.width;
  shape.heads = row.heads;
  shape.query_rank = row.query_rank;
  shape.nope_dim = row.nope_dim;
  shape.rope_dim = row.rope_dim;
  shape.value_dim = row.value_dim;
  shape.vocabulary = row.vocabulary;
  shape.context = row.context;
  shape.gated = family_of(row.family).gated;
  shape.tied_head = row.tied_head;
  shape.parameters = row.parameters;
  shape.active_parameters = row.active_parameters;
  for (std::uint32_t at = 0; at < row.layers; ++at)
    shape.layers.push_back(layer_of(row, row.pattern[at % row.pattern.size()]));
  for (std::size_t at = 0; at < row.unverified.size();) {
    const std::size_t end = std::min(row.unverified.find(';', at), row.unverified.size());
    shape.unverified.push_back(in_words(row.unverified.substr(at, end - at)));
    at = end + 1;
  }
  for (const std::string_view key : {"layers", "width", "heads", "kv_heads", "k_dim", "v_dim", "vocabulary", "context"})
    shape.said_by.emplace(key, "table of known models");
  return shape;
}

}  // namespace

Result<ModelShape> known_model(std::string_view name) {
  const KnownModel* row = name.size() > kMaxNameBytes ? nullptr : find_row(name);
  if (row == nullptr) return unknown(name);
  return shape_of(*row);
}

std::vector<std::string_view> known_model_names() {
  std::vector<std::string_view> names;
  for (const KnownModel& row : known_model_rows()) names.push_back(row.name);
  return names;
}

}  // namespace kvasir::artifact
