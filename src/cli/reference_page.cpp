#include "cli/reference_page.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/settings.hpp"

namespace kvasir::cli {
namespace {

// In a cell of a table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string spelling(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  const std::string type = option.get_type_name();
  const bool has_value = option.get_expected_max() > 0 && !type.empty();
  return "`" + names + (has_value ? " " + type : "") + "`";
}

std::string section(const DescribedCommand& command) {
  std::string usage = "kvasir " + command.name;
  for (const CLI::Option* option : command.app->get_options())
    if (option->get_positional()) usage += fmt::format(" {}", option->get_name(true));
  std::string text = fmt::format("\n## {}\n\n{}.\n\n```\n{} [options]\n```\n", command.name, command.app->get_description(), usage);
  const bool has_config = command.app->get_option_no_throw("--config") != nullptr;
  for (const std::string& group : command.app->get_groups()) {
    const auto options = command.app->get_options([&group](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    });
    if (options.empty() || group.empty()) continue;
    text += fmt::format("\n{}\n\n| option | {}what |\n|---|---|{}\n", group, has_config ? "environment | " : "", has_config ? "---|" : "");
    for (const CLI::Option* option : options) {
      const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
      const std::string variable = is_setting(name) ? "`" + environment_name(name) + "`" : "";
      text += fmt::format("| {} | {}{} |\n", cell(spelling(*option)), has_config ? variable + " | " : "", cell(option->get_description()));
    }
  }
  return text;
}

}  // namespace

std::string reference_page(const std::vector<DescribedCommand>& commands) {
  std::string text =
      "# Commands and options\n\n"
      "This page is written from the program's own table of options, the one that parses them; a test compares the two.\n\n"
      "Where a table has a column *environment*, an option is looked for on the command line, then in that variable, then in the\n"
      "YAML file that `--config` names (`threads: 2`), then it has its default. `--print-config` shows what came from where.\n\n"
      "Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 failure at run time, 2 usage, 3 gate failed or plan\n"
      "does not fit, 4 bad input, 130 and 143 on signals. `KVASIR_ISA=avx512|avx2|scalar` forces an instruction class.\n";
  for (const DescribedCommand& command : commands) text += section(command);
  return text;
}

}  // namespace kvasir::cli
