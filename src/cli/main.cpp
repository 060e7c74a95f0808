// The program: standard streams in, exit code out.
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/exit_code.hpp"
#include "platform/terminal.hpp"

int main(int argc, char** argv) {
  kvasir::cli::Console console{std::cin, std::cout, std::cerr, kvasir::platform::is_terminal(0), kvasir::platform::is_terminal(1),
                               kvasir::platform::is_terminal(2)};
  const kvasir::cli::Environment environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  const int code = kvasir::cli::run_command_line(std::vector<std::string>(argv + 1, argv + argc), environment, console);
  std::cout.flush();
  if (std::cout || code != kvasir::cli::kExitOk) return code;
  std::cerr << "kvasir: the results could not be written to stdout\n";   // a full disk, a closed descriptor
  return kvasir::cli::kExitFailure;
}
