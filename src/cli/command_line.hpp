// The command line: parses it, explains what is wrong with it, and runs the subcommand.
// Thread rule: one call at a time (std::locale and terminal are the process's).
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/settings.hpp"

namespace kvasir::cli {

// `arguments` without the program's name; `environment` gives the values of variables. Returns the exit code
// (cli/exit_code.hpp). Unknown commands and options are errors that name the nearest valid one; options given twice are
// errors unless they are lists.
int run_command_line(const std::vector<std::string>& arguments, const Environment& environment, Console& console);

// docs/options.md: every command with its options (cli/reference_page.hpp).
std::string options_page();

}  // namespace kvasir::cli
