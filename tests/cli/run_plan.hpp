// `kvasir plan` for tests.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace kvasir::test {

// arguments: what follows `plan`.
inline ProgramRun run_plan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "plan");
  return run_program(arguments);
}

// The object of --json; the plan must fit, where it is asked to.
inline nlohmann::json planned(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const ProgramRun run = run_plan(std::move(arguments));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out, nullptr, false);
}

}  // namespace kvasir::test
