// kvasir serve: the model behind an HTTP server that speaks the OpenAI API.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <utility>

#include "base/units.hpp"
#include "artifact/record_json.hpp"
#include "cli/artifact_record.hpp"
#include "cli/command.hpp"
#include "cli/effective.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "cli/serve_flags.hpp"
#include "platform/memory.hpp"
#include "server/app/server_app.hpp"

namespace kvasir::cli {
namespace {

// What tells models apart: the file's size and shape. Its weights are not hashed, which would take as long as loading.
std::string identity_of(const artifact::GgufFile& file) {
  std::string text = fmt::format("{} bytes, {} tensors", file.file_bytes(), file.tensors().size());
  for (const char* key : {"general.name", "general.architecture"}) {
    if (const auto value = file.get_string(key); value.ok()) text += fmt::format(", {}", *value);
  }
  return text;
}

// For /kv/record, and for --record if it names a file.
Result<std::string> record_launch(const artifact::GgufFile& file, const model::Model& model, const engine::PoolConfig& config,
                                  const std::string& path, const std::function<bool()>& go_on) {
  KV_ASSIGN(const artifact::ArtifactRecord record, launched_record(file, model, config, [&](std::uint64_t) { return go_on(); }));
  KV_ASSIGN(std::string text, artifact::record_text(record));
  if (!path.empty()) KV_TRY(write_record(path, text));
  return text;
}

Result<server::LoadedEngine> load(const ServeFlags& flags, server::LoadProgress& progress) {
  progress.stage("reading the tokenizer");
  KV_ASSIGN(artifact::GgufFile file, open_model_file(flags.model));
  server::LoadedEngine out;
  out.root = flags.model;
  out.identity = identity_of(file);
  progress.stage("loading weights", file.file_bytes());
  KV_ASSIGN(LoadedModel loaded, load_model(flags.model, flags.engine, AfterLoad::keep_file));
  KV_ASSIGN(const engine::PoolConfig pool, flags.pool_config(loaded.model->geometry()));
  KV_ASSIGN(out.engine, engine::Engine::create(loaded.model, loaded.tokenizer, pool));
  out.record = [file = std::move(loaded.file), model = loaded.model, pool, path = flags.launch.record](const auto& go_on) {
    return record_launch(*file, *model, pool, path, go_on);
  };
  out.tokenizer = std::move(loaded.tokenizer);
  out.chat_template = std::move(loaded.chat_template);
  return out;
}

// A line to paste into another terminal.
std::string curl_line(const ServeFlags& flags, const server::ServerApp& app, const server::AppConfig& config) {
  const bool tcp = !flags.http.host.empty();
  std::string url = tcp ? app.url() : "http://localhost";
  for (const std::string& any : {std::string("0.0.0.0"), std::string("[::]")}) {
    if (const std::size_t at = url.find(any); at != std::string::npos) url.replace(at, any.size(), "127.0.0.1");
  }
  return fmt::format(
      "curl {}{}/v1/chat/completions {}-H 'Content-Type: application/json' -d '{{\"model\": \"{}\", "
      "\"messages\": [{{\"role\": \"user\", \"content\": \"Why is the sky blue?\"}}], \"max_tokens\": 64}}'",
      tcp ? "" : "--unix-socket '" + flags.http.unix_socket + "' ", url,
      config.keys.empty() ? "" : "-H \"Authorization: Bearer $KVASIR_API_KEY\" ", config.names[0]);
}

void say_ready(const ServeFlags& flags, const server::ServerApp& app, const server::AppConfig& config, Console& console) {
  const engine::EffectiveSettings& settings = app.settings();
  console.err << fmt::format(
      "kvasir: ready on {} ({}; {} tokens of {} cache in {}, blocks of {}; {} sequences, context {})\n", app.url(),
      config.names[0], settings.max_rows, settings.kv_cache_dtype, format_bytes(settings.kv_cache_bytes),
      settings.block_tokens, settings.max_num_seqs, settings.max_model_len);
  console.err << "kvasir: try  " << curl_line(flags, app, config) << '\n' << std::flush;
}

int run(const ServeFlags& flags, Console& console) {
  Result<server::AppConfig> config = flags.app_config();
  if (!config.ok()) return report_error(console, config.error());
  // What needs no load is said before a port opens.
  if (const auto file = open_model_file(flags.model); !file.ok()) return report_error(console, file.error());
  if (!flags.launch.record.empty()) {
    if (const Status target = check_record_target(flags.launch.record); !target.ok()) return report_error(console, target.error());
  }
  auto app = server::ServerApp::create(*config, [&flags](server::LoadProgress& progress) { return load(flags, progress); });
  if (!app.ok()) return report_error(console, app.error());
  console.err << fmt::format("kvasir: listening on {}, loading {}\n", (*app)->url(), flags.model) << std::flush;

  const Status loaded = (*app)->wait_loaded();
  if (!loaded.ok() && loaded.error().code != ErrorCode::cancelled) return report_error(console, loaded.error());
  if (loaded.ok()) say_ready(flags, **app, *config, console);
  const int signal = (*app)->wait();
  const int code = signal != 0 ? kExitSignal + signal : kExitOk;
  // Nothing interrupts a loader, and nothing depends on its end.
  if ((*app)->loading()) std::_Exit(code);
  return code;
}

}  // namespace

Command add_serve(CLI::App& root) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "Serve the model over HTTP, as the OpenAI API");
  add_serve_flags(*app, *flags);
  return {app, &flags->model, [flags](Console& console) { return run(*flags, console); }};
}

}  // namespace kvasir::cli
