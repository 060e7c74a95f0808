// kvasir convert-heads: repeated heads answer as the model does, to the bit; files are whole or not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string model_of(std::uint32_t kv_heads) {
  TinyModelSpec spec;
  spec.heads = 8;
  spec.kv_heads = kv_heads;
  std::string path = scratch_path("heads.gguf");
  write_tiny_model(spec, path);
  return path;
}

std::string fresh(const std::string& name) {
  std::string path = scratch_path(name);
  std::filesystem::remove(path);
  return path;
}

ProgramRun convert(const std::string& in, const std::string& out, const std::string& kv_heads) {
  return run_program({"convert-heads", in, out, "--kv-heads", kv_heads, "--type", "f32", "--json"});
}

json answer(const std::string& model, const std::string& compute) {
  const ProgramRun run = run_program({"run", model, "--prompt", "the quick brown fox", "--max-tokens", "12", "--no-chat-template", "--json", "--logprobs", "2", "--compute", compute});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json all = json::parse(run.out, nullptr, false);
  return {all["token_ids"], all["logprobs"]};
}

TEST(ConvertHeads, RepeatedHeadsAnswerAsTheModel) {
  const std::string model = model_of(2), same = fresh("same.gguf");
  ASSERT_EQ(convert(model, same, "2").exit_code, 0);
  for (const char* more : {"4", "8"}) {
    const std::string repeated = fresh("repeated.gguf");
    const ProgramRun run = convert(model, repeated, more);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "") << "nothing to warn of";
    const json told = json::parse(run.out);
    EXPECT_EQ(told["way"], "repeated");
    EXPECT_EQ(told["kv_bytes_per_token"].get<int>() * 2, told["kv_bytes_per_token_before"].get<int>() * std::stoi(more));
    EXPECT_EQ(answer(repeated, "f32"), answer(same, "f32")) << more;
  }
}

TEST(ConvertHeads, FewerAreAnotherModelAndSaidToBe) {
  const std::string model = model_of(8), pooled = fresh("pooled.gguf");
  const ProgramRun run = convert(model, pooled, "1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("warning: fewer heads by their mean are another model"));
  EXPECT_EQ(json::parse(run.out)["way"], "mean-pooled");
  EXPECT_NE(answer(pooled, "f32"), answer(model, "f32"));
}

TEST(ConvertHeads, FilesAreWholeOrNotThere) {
  const std::string model = model_of(2), out = fresh("out.gguf");
  const ProgramRun wrong = convert(model, out, "3");
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_THAT(wrong.err, HasSubstr("1, 2, 4, 8"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".new"));
  EXPECT_THAT(convert(model, model, "4").err, HasSubstr("exists; valid: a new file"));
  EXPECT_EQ(convert(model, "/proc/none/out.gguf", "4").exit_code, 1);
  EXPECT_EQ(convert(scratch_path("none.gguf"), out, "4").exit_code, 4);
  EXPECT_EQ(run_program({"convert-heads", model, out}).exit_code, 2) << "--kv-heads is required";
}

}  // namespace
}  // namespace kvasir::test
