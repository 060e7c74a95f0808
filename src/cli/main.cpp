// The program: standard streams in, exit code out.
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "platform/terminal.hpp"

int main(int argc, char** argv) {
  kvasir::cli::Console console{std::cin, std::cout, std::cerr, kvasir::platform::is_terminal(0), kvasir::platform::is_terminal(1),
                               kvasir::platform::is_terminal(2)};
  const kvasir::cli::Environment environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  return kvasir::cli::run_command_line(std::vector<std::string>(argv + 1, argv + argc), environment, console);
}
