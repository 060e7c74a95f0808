#include "tests/cli/program.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kvasir::test {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') text += "'\\''";
    else text += c;
  }
  return text + "'";
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct ScratchFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("kvasir-cli-test-{}", getpid());
  ScratchFolder() { std::filesystem::create_directories(path); }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

}  // namespace

std::string scratch_path(const std::string& name) {
  static const ScratchFolder folder;
  return folder.path / name;
}

std::string program_path() { return KVASIR_BINARY_DIR "/kvasir"; }

ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramInput& input) {
  const std::string in = scratch_path("stdin"), out = scratch_path("stdout"), err = scratch_path("stderr");
  std::ofstream(in, std::ios::binary) << input.stdin_text;
  std::ofstream(out, std::ios::trunc);
  std::string command = input.environment + " ";
  command += quoted(program_path());
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += fmt::format(" < {} > {} 2> {}", quoted(in), quoted(out), quoted(err));
  if (input.interrupt_at_output) {
    command += fmt::format(" & while kill -0 $! 2> /dev/null && [ ! -s {} ]; do sleep 0.05; done; kill -INT $!; wait $!", quoted(out));
  }
  const int status = std::system(command.c_str());
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -1;
  run.out = read(out);
  run.err = read(err);
  return run;
}

}  // namespace kvasir::test
