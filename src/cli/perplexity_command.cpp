// kvasir perplexity: how well a model predicts a text, counted as llama.cpp counts it (quality/perplexity.hpp).
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <ostream>

#include "cli/command.hpp"
#include "cli/effective.hpp"
#include "cli/engine_flags.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "cli/option_values.hpp"
#include "platform/terminal.hpp"
#include "quality/perplexity.hpp"
#include "report/json.hpp"
#include "report/numbers.hpp"
#include "report/progress.hpp"

namespace kvasir::cli {
namespace {

struct PerplexityFlags {
  std::string model;
  std::string file;
  std::uint32_t context = 512;
  std::uint64_t windows = 0;
  bool json = false;
  EngineFlags engine;
};

void print(const quality::PerplexityResult& result, double seconds, bool json, Console& console) {
  if (json) {
    report::Json object;
    object["perplexity"] = result.perplexity;
    object["nll"] = result.nll;
    object["nll_stderr"] = result.nll_stderr;
    object["tokens"] = result.tokens;
    object["windows"] = result.windows;
    object["seconds"] = seconds;
    object["effective"] = effective_json(result.effective);
    console.out << report::to_json_line(object) << '\n';
    return;
  }
  console.out << fmt::format("perplexity {:.4f} +- {:.4f} over {} tokens in {} windows ({})\n", result.perplexity,
                             result.perplexity * result.nll_stderr, report::format_count(result.tokens),
                             report::format_count(result.windows), report::format_seconds(seconds));
}

int perplexity(const PerplexityFlags& flags, Console& console) {
  const platform::InterruptScope interrupt;
  Result<std::string> text = read_text_file(flags.file);
  if (!text.ok()) return report_error(console, text.error());
  Result<LoadedModel> loaded = load_model(flags.model, flags.engine);
  if (!loaded.ok()) return report_error(console, loaded.error());

  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  report::ProgressLine progress(console.err, console.err_is_terminal, "perplexity", "windows");
  quality::PerplexityOptions options;
  options.context = flags.context;
  options.max_windows = flags.windows;
  options.progress = [&](const quality::PerplexityProgress& p) { progress.update(p.windows_done, p.windows, elapsed()); };
  options.stop = [&] { return interrupt.pending() != 0; };
  Result<quality::PerplexityResult> result =
      quality::perplexity(loaded->model, loaded->tokenizer, *text, options, flags.engine.pool_config());
  progress.clear();
  if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
  if (!result.ok()) return report_error(console, result.error());
  print(*result, elapsed(), flags.json, console);
  return kExitOk;
}

}  // namespace

Command add_perplexity(CLI::App& root) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* app = root.add_subcommand("perplexity", "Perplexity of a text, counted as llama.cpp counts it");
  add_model_argument(*app, flags->model);
  app->add_option("FILE", flags->file, "The text, UTF-8")->required()->type_name("");
  app->add_option("--context", flags->context, "Tokens of a window; the second half of each is scored (default 512)")
      ->check(whole_number(4, 1u << 24))->type_name("N");
  app->add_option("--windows", flags->windows, "At most so many windows (default: all)")->check(whole_number(1, 1u << 24))->type_name("N");
  app->add_flag("--json", flags->json, "One JSON object");
  add_engine_flags(*app, flags->engine);
  return {app, &flags->model, [flags](Console& console) { return perplexity(*flags, console); }};
}

}  // namespace kvasir::cli
