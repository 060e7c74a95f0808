// kvasir plan: the memory that a model will take, before anything is loaded.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "artifact/record_json.hpp"
#include "cli/artifact_record.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/output_file.hpp"
#include "cli/plan_answer.hpp"
#include "plan/planned_model.hpp"

namespace kvasir::cli {
namespace {

// To the file, or to stdout.
Status write_planned_record(const PlanFlags& flags, const Planned& planned, Console& console) {
  const bool to_stdout = flags.record.record == kRecordToStdout;
  const char* other = flags.json ? "--json" : !flags.what_if.empty() ? "--what-if" : flags.launch ? "--launch" : nullptr;
  if (to_stdout && other != nullptr)
    return Error{ErrorCode::usage, fmt::format("--record without a file takes the place of the plan, of which {} is a part; valid: --record FILE {}", other, other)};
  std::error_code ignored;
  const std::uintmax_t bytes = plan::is_weights_file(flags.model) ? std::filesystem::file_size(flags.model, ignored) : 0;
  KV_ASSIGN(const artifact::ArtifactRecord record, planned_record(flags, planned, show_hashing(console, bytes)));
  KV_ASSIGN(const std::string text, artifact::record_text(record));
  if (!to_stdout) return write_record(flags.record.record, text);
  console.out << text;
  return ok_status();
}

int run_plan(const PlanFlags& flags, Console& console) {
  const Result<Planned> planned = answer_plan(flags);
  if (!planned.ok()) return report_error(console, planned.error());
  if (!flags.html.empty()) {
    const Status written = write_file(flags.html, plan_html(flags, *planned));
    if (!written.ok()) return report_error(console, written.error());
    console.err << "saved " << flags.html << '\n';
  }
  if (!flags.record.record.empty()) {
    const Status done = write_planned_record(flags, *planned, console);
    if (!done.ok()) return report_error(console, done.error());
  }
  if (flags.json) {
    console.out << report::to_json_line(plan_json(flags, *planned)) << '\n';
  } else if (flags.record.record != kRecordToStdout) {
    print_plan(flags, *planned, console.out);
  }
  return planned->fit && !planned->fit->fits ? kExitNo : kExitOk;
}

}  // namespace

Command add_plan(CLI::App& root) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* app = root.add_subcommand("plan", "Tell the memory a model will take: a GGUF, a config.json or a known model, nothing loaded");
  add_plan_flags(*app, *flags);
  return {app, &flags->model, [flags](Console& console) { return run_plan(*flags, console); }};
}

}  // namespace kvasir::cli
