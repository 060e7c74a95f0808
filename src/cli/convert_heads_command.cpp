// kvasir convert-heads: a model file with another number of KV heads, to measure what they cost and give.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>

#include "artifact/convert_heads.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "cli/option_values.hpp"
#include "engine/pool_config.hpp"
#include "format/block_layout.hpp"
#include "report/json.hpp"
#include "report/numbers.hpp"

namespace kvasir::cli {
namespace {

struct ConvertHeadsFlags {
  std::string in, out;
  std::uint32_t kv_heads = 0;
  std::string type = "f16";
  bool json = false;
};

constexpr const char* kPooledWarning =
    "warning: fewer heads by their mean are another model, which answers badly until it is trained (the GQA paper trains on 5 % "
    "of the first training's steps); measure it with `kvasir perplexity`";

artifact::TensorType type_of(const std::string& name) {
  return name == "f32" ? artifact::TensorType::f32 : name == "f16" ? artifact::TensorType::f16 : artifact::TensorType::bf16;
}

// Beside it, then renamed: who reads never meets half a model.
Result<artifact::ConvertedHeads> convert_to_file(const artifact::GgufFile& file, const ConvertHeadsFlags& flags) {
  std::error_code failure;
  if (std::filesystem::exists(flags.out, failure))
    return Error{ErrorCode::usage, fmt::format("OUT: '{}' exists; valid: a new file", flags.out)};
  const std::string beside = flags.out + ".new";
  const Error unwritable{ErrorCode::io, fmt::format("'{}' cannot be written", beside)};
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  if (!out) return unwritable;
  Result<artifact::ConvertedHeads> made = artifact::convert_heads(file, {flags.kv_heads, type_of(flags.type)}, [&](std::span<const std::byte> bytes) -> Status {
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return out ? ok_status() : Status(unwritable);
  });
  out.close();
  if (made.ok() && !out) made = unwritable;
  if (made.ok()) std::filesystem::rename(beside, flags.out, failure);
  if (made.ok() && failure) made = Error{ErrorCode::io, fmt::format("'{}' cannot be written: {}", flags.out, failure.message())};
  if (!made.ok()) std::filesystem::remove(beside, failure);
  return made;
}

// Of a token's rows in an f16 cache, all layers.
Result<std::uint64_t> kv_bytes(artifact::ModelGeometry geometry, std::uint32_t kv_heads) {
  geometry.kv_heads.assign(geometry.layers, kv_heads);
  std::uint64_t bytes = 0;
  for (const format::CacheGroup& group : geometry.kv_geometry({}, engine::PoolConfig().block_tokens).groups) {
    KV_ASSIGN(const format::BlockLayout layout, format::BlockLayout::create(group));
    bytes += layout.bytes_per_token();
  }
  return bytes;
}

int convert(const ConvertHeadsFlags& flags, Console& console) {
  const Result<artifact::GgufFile> file = open_model_file(flags.in);
  if (!file.ok()) return report_error(console, file.error());
  const Result<artifact::ModelGeometry> geometry = artifact::ModelGeometry::from_gguf(*file);
  if (!geometry.ok()) return report_error(console, geometry.error());
  const Result<artifact::ConvertedHeads> made = convert_to_file(*file, flags);
  if (!made.ok()) return report_error(console, made.error());
  if (made->way == artifact::HeadsWay::pooled) console.err << kPooledWarning << '\n';
  const Result<std::uint64_t> before = kv_bytes(*geometry, made->from), after = kv_bytes(*geometry, made->to);
  if (!before.ok() || !after.ok()) return report_error(console, before.ok() ? after.error() : before.error());
  if (flags.json) {
    report::Json json = {{"model", flags.in}, {"output", flags.out}, {"way", to_string(made->way)}, {"heads", geometry->heads},
                         {"kv_heads_before", made->from}, {"kv_heads", made->to}, {"type", flags.type}, {"bytes", made->bytes},
                         {"kv_bytes_per_token_before", *before}, {"kv_bytes_per_token", *after}};
    console.out << report::to_json_line(json) << '\n';
    return kExitOk;
  }
  console.out << fmt::format("{}: {} for {}, {} from {}; matrices in {}, {}\nA token's K and V in f16: {} instead of {}.\n", flags.out,
                             report::format_counted(made->to, "KV head"), report::format_counted(geometry->heads, "query head"), to_string(made->way), made->from, flags.type, format_bytes(made->bytes), format_bytes(*after),
                             format_bytes(*before));
  return kExitOk;
}

}  // namespace

Command add_convert_heads(CLI::App& root) {
  auto flags = std::make_shared<ConvertHeadsFlags>();
  CLI::App* app = root.add_subcommand("convert-heads", "Write a model with more or fewer KV heads: repeated, or the mean of neighbours");
  app->add_option("IN", flags->in, "A GGUF file")->required()->type_name("");
  app->add_option("OUT", flags->out, "The file to write; it must not exist")->required()->check(not_empty())->type_name("");
  app->add_option("--kv-heads", flags->kv_heads, "KV heads of a layer: a multiple or a divisor of the model's that divides its query heads")
      ->required()->check(whole_number(1, 65536))->type_name("N");
  app->add_option("--type", flags->type, "Type of all matrices: f32, f16 or bf16 (default f16)")->check(one_of({"f32", "f16", "bf16"}))->type_name("TYPE");
  app->add_flag("--json", flags->json, "One JSON object");
  return {app, nullptr, [flags](Console& console) { return convert(*flags, console); }};
}

}  // namespace kvasir::cli
