// flag > environment > file > default, for every option of a command that runs the engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

class Settings : public testing::Test {
 protected:
  static void SetUpTestSuite() { write_tiny_model(TinyModelSpec::gqa(), scratch_path("settings.gguf")); }

  std::string model() const { return scratch_path("settings.gguf"); }
  std::string file(std::string_view text) const {
    const std::string path = scratch_path("settings.yaml");
    write_file(path, std::as_bytes(std::span(text)));
    return path;
  }
  // The block size and threads that really ran.
  Json effective(const std::vector<std::string>& more, const std::string& environment) const {
    std::vector<std::string> arguments = {"run", model(), "--no-chat-template", "--prompt", "once", "--max-tokens", "2", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments, {.environment = environment});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Json::parse(run.out, nullptr, false)["effective"];
  }
  ProgramRun refused(const std::vector<std::string>& more, const std::string& environment = "") const {
    std::vector<std::string> arguments = {"run", model(), "--prompt", "x"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments, {.environment = environment});
    EXPECT_EQ(run.exit_code, 2);
    return run;
  }
};

TEST_F(Settings, FlagOutranksEnvironmentOutranksFileOutranksDefault) {
  const std::string path = file("block-size: 64\nthreads: 1\nkv-cache-dtype: bf16\n");
  EXPECT_EQ(effective({}, "")["block_tokens"], 32);
  EXPECT_EQ(effective({"--config", path}, "")["block_tokens"], 64);
  EXPECT_EQ(effective({}, "KVASIR_CONFIG=" + path)["kv_cache_dtype"], "bf16");
  EXPECT_EQ(effective({"--config", path}, "KVASIR_BLOCK_SIZE=128")["block_tokens"], 128);
  const Json all = effective({"--config", path, "--block-size", "16"}, "KVASIR_BLOCK_SIZE=128");
  EXPECT_EQ(all["block_tokens"], 16);
  EXPECT_EQ(all["threads"], 1);
  EXPECT_EQ(all["kv_cache_dtype"], "bf16");
}

TEST_F(Settings, ModelAndFlagsComeFromTheFileToo) {
  const std::string path = file("model: " + model() + "\nno-chat-template: true\nmax-tokens: 3\nstop: [\"\\n\\n\", END]\nignore-eos: yes\n");
  const ProgramRun run = run_program({"run", "--config", path, "--prompt", "once", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out, nullptr, false)["token_ids"].size(), 3u);
  // Switched off by what outranks the file: the model's end of text counts again, and the chat template is asked for.
  EXPECT_EQ(run_program({"run", "--config", path, "--prompt", "once", "--json"}, {.environment = "KVASIR_NO_CHAT_TEMPLATE=maybe"}).exit_code, 2);
}

TEST_F(Settings, PrintConfigShowsEachValueWithItsOriginAndCanBeReadBack) {
  const std::string path = file("block-size: 64\n");
  const ProgramRun run = run_program({"run", model(), "--config", path, "--threads", "1", "--stop", "a b", "--print-config"},
                                     {.environment = "KVASIR_KV_CACHE_DTYPE=f32"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("threads: 1"), HasSubstr("# command line"), HasSubstr("kv-cache-dtype: f32"),
                             HasSubstr("# environment, KVASIR_KV_CACHE_DTYPE"), HasSubstr("block-size: 64"), HasSubstr("# " + path),
                             HasSubstr("# max-num-seqs: 32"), HasSubstr("# default"), HasSubstr("stop: \"a b\"")));
  const std::string again = file(run.out);
  const Json effective_again = effective({"--config", again}, "");
  EXPECT_EQ(effective_again["block_tokens"], 64);
  EXPECT_EQ(effective_again["threads"], 1);
  EXPECT_EQ(effective_again["kv_cache_dtype"], "f32");
}

TEST_F(Settings, WhatIsWrongIsNamedWithWhereItStands) {
  EXPECT_THAT(refused({"--config", file("block-sise: 64\n")}).err, AllOf(HasSubstr("block-sise"), HasSubstr("did you mean 'block-size'")));
  EXPECT_THAT(refused({"--config", file("block-size: 64\nblock-size: 32\n")}).err, HasSubstr("twice"));
  EXPECT_THAT(refused({"--config", file("block-size: 64\n---\nthreads: 2\n")}).err, HasSubstr("2 documents"));
  EXPECT_THAT(refused({"--config", file("block-size: {a: 1}\n")}).err, HasSubstr("block-size"));
  EXPECT_THAT(refused({"--config", file("- 64\n")}).err, HasSubstr("a map of option names"));
  EXPECT_THAT(refused({"--config", file("block-size: [64\n")}).err, HasSubstr("line"));
  EXPECT_THAT(refused({"--config", file("block-size: 63\n")}).err, AllOf(HasSubstr("--block-size"), HasSubstr("63")));
  EXPECT_THAT(refused({"--config", file("ignore-eos: 2\n")}).err, AllOf(HasSubstr("ignore-eos"), HasSubstr("true or false")));
  EXPECT_THAT(refused({"--config", scratch_path("not-there.yaml")}).err, HasSubstr("cannot be read"));
  EXPECT_THAT(refused({}, "KVASIR_THREADS=many").err, AllOf(HasSubstr("--threads"), HasSubstr("many")));
}

}  // namespace
}  // namespace kvasir::test
