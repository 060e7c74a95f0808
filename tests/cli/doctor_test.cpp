#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Json report_of(const ProgramRun& run) { return Json::parse(run.out, nullptr, false); }

std::vector<std::string> names_of(const Json& report) {
  std::vector<std::string> names;
  for (const Json& finding : report["findings"]) names.push_back(finding["name"]);
  return names;
}

TEST(Doctor, LooksAtTheMachineAndTheModel) {
  const std::string model = scratch_path("doctor.gguf");
  write_tiny_model(TinyModelSpec::gqa(), model);
  const ProgramRun run = run_program({"doctor", model, "--json"});
  const Json report = report_of(run);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(report["ok"], true);
  EXPECT_THAT(names_of(report), testing::ElementsAre("processor class", "processors", "memory", "open files", "architecture", "weights", "loading",
                                                     "tokenizer", "chat template"));
  EXPECT_THAT(run_program({"doctor"}).out, HasSubstr("processor class"));
}

TEST(Doctor, AModelThatCannotBeServedIsAFailure) {
  const ProgramRun run = run_program({"doctor", scratch_path("not-there.gguf"), "--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(report_of(run)["ok"], false);
  const ProgramRun forced = run_program({"doctor", "--json"}, {.environment = "KVASIR_ISA=sse9"});
  EXPECT_EQ(forced.exit_code, 1);
  EXPECT_THAT(forced.out, HasSubstr("sse9"));
}

}  // namespace
}  // namespace kvasir::test
