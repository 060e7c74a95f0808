// Where an option's value comes from: flag > environment > configuration file > default. Every long option of a command
// that runs the engine can be given in three ways, from one table, the command's own options:
//   --max-num-seqs 8      KVASIR_MAX_NUM_SEQS=8      max-num-seqs: 8   in the YAML file that --config names
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

enum class Origin { flag, environment, file, fallback };

// One option of a command. `values` is empty where the default holds.
struct Setting {
  std::string name;   // long name, without dashes
  std::vector<std::string> values;
  std::string fallback;   // the default, as the help text tells it; may be empty
  bool is_flag = false;   // present or not; its value, if it has one, is "true"
  bool is_secret = false;
  Origin origin = Origin::fallback;
  std::string source;   // the variable's name, or the file's
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// Whether an option of this long name can be given in the environment and in a file.
bool is_setting(const std::string& name);

// "max-num-seqs" -> "KVASIR_MAX_NUM_SEQS"
std::string environment_name(const std::string& option);

// What each option of `command` comes to. REQUIRES: the command line has been parsed into `command`, so that each option
// tells whether it was given. Empty for a command without --config. Errors: usage for a file that cannot be read as a
// YAML map, for a key that is no option (the nearest one is named), and for a flag's value that is neither true nor false.
Result<std::vector<Setting>> resolve_settings(const CLI::App& command, const Environment& environment);

// The settings that are not on the command line, as words for it.
std::vector<std::string> as_arguments(const std::vector<Setting>& settings);

// A YAML file that --config takes, each value followed by where it came from. Secrets are not shown.
std::string print_settings(const std::vector<Setting>& settings);

// Declares --config and --print-config.
void add_settings_options(CLI::App& command);
bool wants_settings_printed(const CLI::App& command);

}  // namespace kvasir::cli
