// The reference page of all commands and their options (docs/options.md), from the same table as parsing and --help.
// Thread rule: pure.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kvasir::cli {

struct DescribedCommand {
  std::string name;   // "bench serve"
  const CLI::App* app = nullptr;
};

// Markdown: one section a command, one table for each group of its options. Options that --config takes are shown with
// the environment variable that also sets them.
std::string reference_page(const std::vector<DescribedCommand>& commands);

}  // namespace kvasir::cli
