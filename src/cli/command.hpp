// A subcommand: how it appears on the command line, and what it does. One file each; the list is in command_line.cpp.
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/console.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct Command {
  CLI::App* app = nullptr;               // owned by the root
  std::string* model = nullptr;          // its MODEL argument, if it has one (cli/model_argument.hpp)
  std::function<int(Console&)> run;      // after parsing; returns the exit code and reports its own errors
};

Command add_inspect(CLI::App& root);
Command add_tokenize(CLI::App& root);
Command add_run(CLI::App& root);
Command add_perplexity(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_doctor(CLI::App& root);
Command add_plan(CLI::App& root);
Command add_serve(CLI::App& root);
Command add_convert_heads(CLI::App& root);
Command add_record(CLI::App& root);
Command add_record_show(CLI::App& record);  // `record show`
Command add_record_diff(CLI::App& record);  // `record diff`
Command add_bench_serve(CLI::App& bench);   // `bench serve`

// Declares the required MODEL argument.
void add_model_argument(CLI::App& command, std::string& model);

}  // namespace kvasir::cli
