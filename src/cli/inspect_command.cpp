// kvasir inspect: what a model file holds, without loading it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <set>

#include "artifact/geometry.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "model/offered.hpp"
#include "report/json.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

constexpr std::size_t kShownValueWidth = 72;

struct InspectFlags {
  std::string model;
  bool json = false;
  bool metadata = false;
};

struct TypeCount {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::map<std::string, TypeCount> count_types(const artifact::GgufFile& file) {
  std::map<std::string, TypeCount> counts;
  for (const artifact::GgufTensor& tensor : file.tensors()) {
    TypeCount& count = counts[std::string(artifact::to_string(tensor.type))];
    ++count.tensors;
    count.bytes += tensor.bytes.size();
    count.elements += tensor.bytes.size() / artifact::block_bytes(tensor.type) * artifact::block_elements(tensor.type);
  }
  return counts;
}

// A metadata value in JSON. Arrays are told by length: a vocabulary has 50,000 entries.
Json to_json(const artifact::GgufValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, artifact::GgufArray>) {
          return Json{{"array", v.size()}};
        } else if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string_view>) {
          return std::string(v);
        } else {
          return v;
        }
      },
      value);
}

std::string string_or(const artifact::GgufFile& file, std::string_view key, std::string otherwise) {
  const Result<std::string_view> value = file.get_string(key);
  return value.ok() ? std::string(*value) : std::move(otherwise);
}

// "gpt2, smollm": the kind of vocabulary and its pre-tokenizer.
std::string vocabulary_kind(const artifact::GgufFile& file) {
  const std::string kind = string_or(file, "tokenizer.ggml.model", "none");
  const std::string pre = string_or(file, "tokenizer.ggml.pre", "");
  return pre.empty() ? kind : kind + ", " + pre;
}

std::uint64_t vocabulary_entries(const artifact::GgufFile& file) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  return tokens.ok() ? tokens->size() : 0;
}

// "3" where all layers are alike, "8 0 8 ..." otherwise.
std::string kv_heads_text(const artifact::ModelGeometry& geometry) {
  const std::set<std::uint32_t> kinds(geometry.kv_heads.begin(), geometry.kv_heads.end());
  if (kinds.size() == 1) return fmt::format("{}", *kinds.begin());
  return fmt::format("{}", fmt::join(geometry.kv_heads, " "));
}

// How many layers keep no more than the window.
std::ptrdiff_t window_layers(const artifact::ModelGeometry& g) {
  return std::count_if(g.reach.begin(), g.reach.end(), [](const format::Reach& reach) { return reach.window != 0; });
}

Json geometry_json(const artifact::ModelGeometry& g) {
  const std::set<std::uint32_t> kinds(g.kv_heads.begin(), g.kv_heads.end());
  Json json;
  json["architecture"] = g.architecture;
  json["name"] = g.name;
  json["layers"] = g.layers;
  json["width"] = g.width;
  json["heads"] = g.heads;
  json["kv_heads"] = kinds.size() == 1 ? Json(*kinds.begin()) : Json(g.kv_heads);
  json["head_dim"] = g.head_dim;
  json["feed_forward"] = g.feed_forward;
  json["vocabulary"] = g.vocabulary;
  json["context"] = g.context;
  json["norm_epsilon"] = g.norm_epsilon;
  json["rope"] = {{"pairing", to_string(g.rope.pairing)}, {"dim", g.rope.dim}, {"base", g.rope.base},
                  {"scaling", to_string(g.rope.scaling)}, {"factor", g.rope.factor},
                  {"original_context", g.rope.original_context}};
  json["window"] = g.window;
  json["window_layers"] = window_layers(g);
  json["tied_head"] = g.tied_head;
  json["parameters"] = g.parameters;
  json["weight_bytes"] = g.weight_bytes;
  return json;
}

Json describe(const artifact::GgufFile& file, const artifact::ModelGeometry* geometry) {
  Json json;
  json["file"] = file.name();
  json["file_bytes"] = file.file_bytes();
  json["gguf_version"] = file.version();
  if (geometry != nullptr) {
    json.update(geometry_json(*geometry));
    json["runs"] = model::check_offered(file, *geometry).ok();
  } else {
    json["architecture"] = string_or(file, "general.architecture", "");
    json["runs"] = false;   // a vocabulary alone
  }
  json["tokenizer"] = {{"kind", string_or(file, "tokenizer.ggml.model", "")},
                       {"pre", string_or(file, "tokenizer.ggml.pre", "")},
                       {"entries", vocabulary_entries(file)},
                       {"chat_template", file.find("tokenizer.chat_template") != nullptr}};
  json["tensors"] = file.tensors().size();
  for (const auto& [type, count] : count_types(file)) {
    json["tensor_types"][type] = {{"tensors", count.tensors}, {"elements", count.elements}, {"bytes", count.bytes}};
  }
  for (const auto& [key, value] : file.metadata()) json["metadata"][std::string(key)] = to_json(value);
  return json;
}

void add_geometry_rows(report::Table& table, const artifact::ModelGeometry& g) {
  const auto row = [&](const char* name, std::string value) { table.add_row({name, std::move(value)}); };
  row("layers", fmt::format("{}", g.layers));
  row("width", fmt::format("{}", g.width));
  row("heads", fmt::format("{} query, {} key-value, {} wide", g.heads, kv_heads_text(g), g.head_dim));
  row("feed-forward", fmt::format("{}", g.feed_forward));
  row("context", report::format_count(g.context) + " tokens");
  if (g.window != 0)
    row("window", fmt::format("{} tokens, in {} of {} layers", report::format_count(g.window), window_layers(g), g.layers));
  row("norm epsilon", fmt::format("{:g}", g.norm_epsilon));
  std::string rope = fmt::format("{}, {} of {} elements, base {:g}", to_string(g.rope.pairing), g.rope.dim, g.head_dim, g.rope.base);
  if (g.rope.scaling != artifact::RopeScaling::none) rope += fmt::format(", {} scaling by {:g}", to_string(g.rope.scaling), g.rope.factor);
  row("rope", std::move(rope));
  row("head", g.tied_head ? "tied to the embedding" : "own matrix");
  row("parameters", report::format_count(g.parameters));
  row("weights", format_bytes(g.weight_bytes));
}

void print_types(const artifact::GgufFile& file, std::ostream& out) {
  report::Table table({{"type", report::Align::left}, {"tensors", report::Align::right},
                       {"elements", report::Align::right}, {"bytes", report::Align::right}});
  for (const auto& [type, count] : count_types(file)) {
    table.add_row({type, report::format_count(count.tensors), report::format_count(count.elements), format_bytes(count.bytes)});
  }
  out << '\n' << table.render();
}

void print_metadata(const artifact::GgufFile& file, std::ostream& out) {
  report::Table table({{"key", report::Align::left}, {"value", report::Align::left}});
  for (const auto& [key, value] : file.metadata()) {
    const auto* array = std::get_if<artifact::GgufArray>(&value);
    const std::string text = array != nullptr ? fmt::format("[{} values]", report::format_count(array->size()))
                                              : report::to_json_line(to_json(value));
    table.add_row({std::string(key), report::shorten(text, kShownValueWidth)});
  }
  out << '\n' << table.render();
}

void print(const artifact::GgufFile& file, const artifact::ModelGeometry* geometry, bool metadata, std::ostream& out) {
  report::Table table({{"", report::Align::left}, {"", report::Align::left}});
  table.add_row({"file", fmt::format("{} ({}, GGUF version {})", file.name(), format_bytes(file.file_bytes()), file.version())});
  if (geometry != nullptr && !geometry->name.empty()) table.add_row({"name", geometry->name});
  table.add_row({"architecture", geometry != nullptr ? geometry->architecture : string_or(file, "general.architecture", "none")});
  if (geometry != nullptr) add_geometry_rows(table, *geometry);
  table.add_row({"vocabulary", fmt::format("{} entries ({})", report::format_count(vocabulary_entries(file)), vocabulary_kind(file))});
  table.add_row({"chat template", file.find("tokenizer.chat_template") != nullptr ? "yes" : "no"});
  out << table.render();
  if (!file.tensors().empty()) print_types(file, out);
  if (metadata) print_metadata(file, out);
}

int inspect(const InspectFlags& flags, Console& console) {
  Result<artifact::GgufFile> file = open_model_file(flags.model);
  if (!file.ok()) return report_error(console, file.error());
  // A file without tensors is a vocabulary alone: there is no model to describe, and nothing wrong with it.
  const bool has_model = !file->tensors().empty();
  Result<artifact::ModelGeometry> geometry =
      has_model ? artifact::ModelGeometry::from_gguf(*file) : Result<artifact::ModelGeometry>(artifact::ModelGeometry{});
  if (!geometry.ok()) return report_error(console, geometry.error());
  const artifact::ModelGeometry* shown = has_model ? &*geometry : nullptr;
  if (flags.json) {
    console.out << report::to_json_line(describe(*file, shown)) << '\n';
  } else {
    print(*file, shown, flags.metadata, console.out);
  }
  return kExitOk;
}

}  // namespace

Command add_inspect(CLI::App& root) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* app = root.add_subcommand("inspect", "Show what a model file holds: shape, vocabulary, tensor types, metadata");
  add_model_argument(*app, flags->model);
  app->add_flag("--json", flags->json, "One JSON object");
  app->add_flag("--metadata", flags->metadata, "List every metadata key too (--json always does)");
  return {app, &flags->model, [flags](Console& console) { return inspect(*flags, console); }};
}

}  // namespace kvasir::cli
