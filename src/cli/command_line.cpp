#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <ostream>

#include "base/suggestion.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/model_argument.hpp"
#include "cli/reference_page.hpp"
#include "cli/settings.hpp"

namespace kvasir::cli {
namespace {

constexpr const char* kDescription = "Kvasir runs language models out of a paged KV cache: exact, checked, fast on CPUs.";
constexpr const char* kFooter =
    "Results go to stdout, everything else to stderr. `kvasir COMMAND --help` explains a command.\n"
    "Options of commands that run the engine may also stand in the environment (KVASIR_THREADS=2) or in a YAML file (--config).\n"
    "KVASIR_ISA=avx512|avx2|scalar forces an instruction class; answers do not depend on it.\n"
    "Exit codes: 0 ok, 1 failure at run time, 2 usage, 3 gate failed or plan does not fit, 4 bad input, 130/143 on signals.";

class CommandLine {
 public:
  explicit CommandLine(const Environment& environment) : environment_(environment), root_(kDescription, "kvasir") {
    root_.footer(kFooter);
    root_.set_version_flag("--version", std::string("kvasir ") + KVASIR_VERSION, "Print the version and exit");
    root_.get_formatter()->column_width(36);
    commands_ = {add_inspect(root_), add_plan(root_), add_tokenize(root_), add_run(root_), add_perplexity(root_), add_bench(root_), add_serve(root_), add_doctor(root_)};
    commands_.push_back(add_bench_serve(*root_.get_subcommand("bench")));
    commands_.push_back(add_convert_heads(root_));
    commands_.push_back(add_record(root_));
    CLI::App& record = *root_.get_subcommand("record");
    commands_.insert(commands_.end(), {add_record_show(record), add_record_diff(record)});
  }

  int run(std::vector<std::string> arguments, Console& console) {
    if (arguments.empty()) {
      console.err << root_.help();
      return kExitUsage;
    }
    const Command* command = find(arguments);
    if (command == nullptr && !arguments[0].starts_with("-")) {
      return report_error(console, unknown_command(arguments[0]));
    }
    if (const int code = parse(arguments, command, console, Pass::first); code != kParsed) return code;
    if (command == nullptr) return report_error(console, usage_error("a command is missing; valid: " + names()));
    if (const int code = open_model_argument(arguments, *command, console); code != kParsed) return code;
    Result<std::vector<Setting>> settings = resolve_settings(*command->app, environment_);
    if (!settings.ok()) return report_error(console, settings.error());
    if (wants_settings_printed(*command->app)) {
      console.out << print_settings(*settings);
      return kExitOk;
    }
    const std::vector<std::string> more = as_arguments(*settings);
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (const int code = parse(arguments, command, console, Pass::last); code != kParsed) return code;
    if (const int code = open_model_argument(arguments, *command, console); code != kParsed) return code;
    return command->run(console);
  }

  std::string page() const {
    std::vector<DescribedCommand> described;
    for (const Command& command : commands_) described.push_back({full_name(*command.app), command.app});
    return reference_page(described);
  }

 private:
  static constexpr int kParsed = -1;

  // As CLI11 wants them, the last one first. "--prompt=" gives an empty value, for which it would take the next word:
  // wherever the words come from, the empty one is made a word of its own.
  static std::vector<std::string> for_parser(const std::vector<std::string>& arguments) {
    std::vector<std::string> words;
    for (const std::string& word : arguments) {
      const bool empty_value = word.starts_with("--") && word.find('=') == word.size() - 1;
      words.push_back(empty_value ? word.substr(0, word.size() - 1) : word);
      if (empty_value) words.emplace_back();
    }
    std::reverse(words.begin(), words.end());
    return words;
  }
  // The first pass tells which options are on the command line; what is missing may yet come from elsewhere.
  enum class Pass { first, last };

  // A model argument that holds options too becomes words of the command line. kParsed, or the exit code.
  int open_model_argument(std::vector<std::string>& arguments, const Command& command, Console& console) {
    if (command.model == nullptr || !has_options(*command.model)) return kParsed;
    Result<std::vector<std::string>> words = split_words(*command.model);
    if (!words.ok()) return report_error(console, words.error());
    for (const std::string& prefix : {std::string(), std::string("--model=")}) {
      const auto at = std::find(arguments.begin() + 1, arguments.end(), prefix + *command.model);
      if (at == arguments.end()) continue;
      (*words)[0] = prefix + (*words)[0];
      arguments.insert(arguments.erase(at), words->begin(), words->end());
      return parse(arguments, &command, console, Pass::first);
    }
    return kParsed;
  }

  // By the first word, or the first two for a command below another: `bench serve`.
  const Command* find(const std::vector<std::string>& words) const {
    const Command* found = nullptr;
    for (const Command& command : commands_) {
      const std::string name = full_name(*command.app);
      if (name == words[0]) found = &command;
      if (words.size() > 1 && name == words[0] + " " + words[1]) return &command;
    }
    return found;
  }

  // "run", "bench serve".
  static std::string full_name(const CLI::App& app) {
    const CLI::App* parent = app.get_parent();
    if (parent == nullptr) return "";
    const std::string above = full_name(*parent);
    return above.empty() ? app.get_name() : above + " " + app.get_name();
  }

  std::string names() const {
    std::vector<std::string> all;
    for (const Command& command : commands_) all.push_back(full_name(*command.app));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  Error unknown_command(const std::string& name) const {
    std::vector<std::string> all;
    for (const Command& command : commands_) all.push_back(full_name(*command.app));
    return usage_error(fmt::format("unknown command '{}'; did you mean '{}'? (valid: {})", name, nearest(name, all), names()));
  }

  // kParsed, or the exit code if help was shown or the arguments were wrong.
  int parse(const std::vector<std::string>& arguments, const Command* command, Console& console, Pass pass) {
    const CLI::App& app = command != nullptr ? *command->app : root_;
    try {
      root_.parse(for_parser(arguments));
    } catch (const CLI::CallForHelp&) {
      const std::string above = app.get_parent() != nullptr ? full_name(*app.get_parent()) : "";
      console.out << app.help(above, CLI::AppFormatMode::Normal);
      return kExitOk;
    } catch (const CLI::CallForVersion& version) {
      console.out << version.what() << '\n';
      return kExitOk;
    } catch (const CLI::RequiredError& error) {
      if (pass == Pass::last || !app.remaining().empty()) return report_error(console, explain(app, error));
    } catch (const CLI::ParseError& error) {
      return report_error(console, explain(app, error));
    }
    return kParsed;
  }

  // What is wrong, most telling first: an unknown option explains a missing argument better than the other way round.
  static Error explain(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> extra = app.remaining();
    const auto option = std::find_if(extra.begin(), extra.end(), [](const std::string& word) { return word.starts_with("-"); });
    const std::string hint = fmt::format(" (see `kvasir {}--help`)", app.get_parent() != nullptr ? full_name(app) + " " : "");
    if (option != extra.end()) {
      const std::string name = option->substr(0, option->find('='));
      return usage_error(fmt::format("unknown option '{}'; did you mean '{}'?{}", name, nearest(name, option_names(app)), hint));
    }
    if (!extra.empty()) return usage_error(fmt::format("unexpected argument '{}'{}", extra[0], hint));
    const std::string what = error.what();
    if (what == "--model is required") return usage_error(model_is_required(app) + hint);
    return usage_error(what + hint);
  }

  // What a command would take for one is in its help, before the semicolon: "A GGUF file; ..."
  static std::string model_is_required(const CLI::App& app) {
    const std::string what = app.get_option("--model")->get_description();
    return "MODEL is required: a" + what.substr(0, what.find(';')).substr(1);
  }

  static std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> all;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
    }
    return all;
  }

  const Environment& environment_;
  CLI::App root_;
  std::vector<Command> commands_;
};

}  // namespace

void add_model_argument(CLI::App& command, std::string& model) {
  command.add_option("MODEL,--model,-m", model, "A GGUF file; options may follow in the same argument: \"x.gguf --block-size 64\"")
      ->required()->type_name("");
}

int run_command_line(const std::vector<std::string>& arguments, const Environment& environment, Console& console) {
  try {
    return CommandLine(environment).run(arguments, console);
  } catch (const std::bad_alloc&) {
    return report_error(console, Error{ErrorCode::exhausted, "out of memory"});
  } catch (const std::exception& error) {   // a foreign library's, or a bug: never an abort without a word
    return report_error(console, Error{ErrorCode::internal, fmt::format("unexpected failure: {}", error.what())});
  }
}

std::string options_page() {
  const Environment nothing = [](const std::string&) { return std::nullopt; };
  return CommandLine(nothing).page();
}

}  // namespace kvasir::cli
