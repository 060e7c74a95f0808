// Runs the built program as a person would, and tells what came of it.
// Thread rule: one thread at a time.
#pragma once

#include <string>
#include <vector>

namespace kvasir::test {

struct ProgramRun {
  int exit_code = -1;   // 128 + number if a signal ended it
  std::string out, err;
};

struct ProgramInput {
  std::string stdin_text = {};
  std::string environment = {};       // "NAME=value" words in front of the command
  bool interrupt_at_output = false;   // sends SIGINT once something stands on stdout
};

// The program's path: beside the test's own build.
std::string program_path();

ProgramRun run_program(const std::vector<std::string>& arguments, const ProgramInput& input = {});

// A folder of this test process, removed at exit.
std::string scratch_path(const std::string& name);

}  // namespace kvasir::test
