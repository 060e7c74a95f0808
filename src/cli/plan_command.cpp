// kvasir plan: the memory that a model will take, before anything is loaded.
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/output_file.hpp"
#include "cli/plan_answer.hpp"

namespace kvasir::cli {
namespace {

Status write_page(const PlanFlags& flags, const Planned& planned) {
  KV_ASSIGN(const std::string page, plan_html(flags, planned));
  return write_file(flags.html, page);
}

int run_plan(const PlanFlags& flags, Console& console) {
  const Result<Planned> planned = answer_plan(flags);
  if (!planned.ok()) return report_error(console, planned.error());
  if (!flags.html.empty()) {
    const Status written = write_page(flags, *planned);
    if (!written.ok()) return report_error(console, written.error());
    console.err << "saved " << flags.html << '\n';
  }
  if (flags.json) {
    console.out << report::to_json_line(plan_json(flags, *planned)) << '\n';
  } else {
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
