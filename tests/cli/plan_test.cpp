// kvasir plan, as a person and as a program uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_plan.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string& tiny() {
  static const std::string path = [] {
    std::string made = scratch_path("plan.gguf");
    write_tiny_model(TinyModelSpec::gqa(), made);
    return made;
  }();
  return path;
}

std::string config(const std::string& text) {
  const std::string folder = scratch_path("config");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << text;
  return folder;
}

constexpr const char* kSmallConfig =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "vocab_size": 300, "max_position_embeddings": 512, "tie_word_embeddings": false})";

TEST(Plan, TellsWhatProgramsRelyOn) {
  const json plan = planned({"llama-3.1-70b", "--requests", "32", "--length", "8192", "--kv-cache-dtype", "bf16"});
  EXPECT_EQ(plan["kv_bytes"], 80ull << 30);
  EXPECT_EQ(plan["kv_payload_bytes"], 80ull << 30);
  EXPECT_EQ(plan["kv_bytes_per_token"], 327'680);
  EXPECT_TRUE(plan["max_sequences"].is_null()) << "nobody said how much memory there is";
  std::uint64_t sum = 0, weights = 0;
  for (const json& line : plan["lines"]) {
    sum += line["bytes"].get<std::uint64_t>();
    if (line["name"].get<std::string>().starts_with("weights")) weights += line["bytes"].get<std::uint64_t>();
    EXPECT_NE(line["how"], "");
    EXPECT_NE(line["field"], "");
  }
  EXPECT_EQ(plan["total_bytes"], sum);
  EXPECT_EQ(plan["weights_bytes"], weights);
}

TEST(Plan, OtherChoicesAreRowsWithTheirNumbers) {
  const json plan = planned({"llama-3-8b", "--length", "4096", "--memory", "24GiB", "--what-if", "formats,heads"});
  EXPECT_GT(plan["what_if"].size(), 30u);
  EXPECT_EQ(plan["what_if"][0]["formats"], "as planned");
  EXPECT_EQ(plan["what_if"][0]["kv_bytes"], plan["kv_bytes"]);
  EXPECT_EQ(plan["what_if"][0]["max_sequences"], plan["max_sequences"]);
  EXPECT_THAT(run_plan({"llama-3-8b", "--what-if", "format"}).err, AllOf(HasSubstr("'format'"), HasSubstr("formats, heads, blocks, windows")));
  EXPECT_EQ(run_plan({"llama-3-8b", "--what-if", "heads,"}).exit_code, 2);
  const ProgramRun each = run_plan({"llama-3-8b", "--length", "4096", "--what-if", "each"});
  EXPECT_THAT(each.out, AllOf(HasSubstr("blocks of 256"), HasSubstr("int4"), HasSubstr("1 KV head"), HasSubstr("window 4096 everywhere")));
}

TEST(Plan, CommandLinesToPaste) {
  const json plan = planned({"llama-3-8b", "--requests", "2", "--length", "4096"});
  ASSERT_EQ(plan["launch"].size(), 4u);
  EXPECT_EQ(plan["launch"][0]["engine"], "kvasir");
  EXPECT_THAT(run_plan({"llama-3-8b", "--launch"}).out, AllOf(HasSubstr("vllm serve"), HasSubstr("sglang.launch_server"), HasSubstr("llama-server")));
  EXPECT_THAT(run_plan({"llama-3-8b"}).out, Not(HasSubstr("vllm serve")));
}

// What is pasted is taken: the engine's own command line starts a server of exactly that plan's cache.
TEST(Plan, TheEnginesOwnCommandLineIsAccepted) {
  const json plan = planned({tiny(), "--requests", "2", "--length", "64"});
  std::istringstream words(plan["launch"][0]["command"].get<std::string>());
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  ASSERT_EQ(arguments.front(), "kvasir");
  arguments.erase(arguments.begin());
  arguments.emplace_back("--print-config");
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("max-model-len: 64"));
}

TEST(Plan, ThePageIsWrittenOrTheReasonTold) {
  const std::string page = scratch_path("pages/plan.html");
  const ProgramRun run = run_plan({tiny(), "--html", page});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("saved " + page));
  std::ifstream file(page);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), testing::StartsWith("<!doctype html>"));
  const ProgramRun refused_page = run_plan({tiny(), "--html", "/proc/none/plan.html"});
  EXPECT_EQ(refused_page.exit_code, 1);
  EXPECT_THAT(refused_page.err, HasSubstr("/proc/none/plan.html"));
}

TEST(Plan, SaysNoWithItsExitCode) {
  const ProgramRun fits = run_plan({"llama-2-7b", "--length", "4096", "--requests", "32", "--memory", "100GiB", "--json"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  const ProgramRun alone = run_plan({"llama-2-7b", "--length", "4096", "--requests", "32", "--memory", "76GiB"});
  EXPECT_EQ(alone.exit_code, 3) << "64 GiB of cache do not fit beside 12.6 GiB of weights";
  EXPECT_THAT(alone.out, AllOf(HasSubstr("Does not fit in 76.0 GiB"), HasSubstr("31 sequences would fit;")));
}

TEST(Plan, OfAFileIsWhatRunReports) {
  const json plan = planned({tiny(), "--length", "200", "--block-size", "16", "--threads", "2"});
  const ProgramRun run = run_program({"run", tiny(), "--prompt", "a", "--max-tokens", "2", "--no-chat-template", "--json", "--max-model-len", "200",
                                      "--block-size", "16", "--max-num-seqs", "1", "--threads", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json told = json::parse(run.out)["memory"]["lines"];
  std::uint64_t metadata = 0, workspace = 0, slack = 0;
  for (const json& line : plan["lines"]) {
    const std::string name = line["name"];
    const std::uint64_t bytes = line["bytes"];
    if (name == "metadata") metadata += bytes;
    if (name == "activations" || name == "logits" || name == "sampler") workspace += bytes;
    if (name == "kv.slack") slack += bytes;
  }
  const auto computed = [&told](const char* name) -> std::uint64_t {
    for (const json& line : told) {
      if (line["name"] == name) return line["computed_bytes"];
    }
    return 0;
  };
  EXPECT_EQ(computed("weights"), plan["weights_bytes"]);
  EXPECT_EQ(computed("cache"), plan["kv_bytes"]);
  EXPECT_EQ(computed("slack"), slack);
  EXPECT_EQ(computed("workspace"), workspace);
  EXPECT_EQ(computed("metadata"), metadata);
}

TEST(Plan, ReadsAConfigurationAndItsFolder) {
  const std::string folder = config(kSmallConfig);
  const json plan = planned({folder, "--length", "100"});
  EXPECT_EQ(plan, planned({folder + "/config.json", "--length", "100"}));
  EXPECT_EQ(plan["kv_bytes_per_token"], 2 * 2 * (16 + 16) * 2);
  EXPECT_EQ(planned({folder, "--set", "kv_heads=4"})["kv_bytes_per_token"], 2 * 4 * (16 + 16) * 2);
}

TEST(Plan, WhatIsWrongIsNamed) {
  const std::string broken = config(R"({"model_type": "llama", "num_hidden_layers": -2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9, "max_position_embeddings": 64})");
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {{"lama-3-8b"}, 4, {"lama-3-8b", "'Llama-3-8B'"}},
      {{"./nothing.gguf"}, 4, {"nothing.gguf"}},
      {{"./nothing.json"}, 4, {"nothing.json"}},
      {{tiny(), "--set", "weight_bits=4"}, 2, {"weight_bits=4"}},
      {{broken}, 4, {"num_hidden_layers", "-2"}},
      {{"llama-3-8b", "--kv-cache-dtype", "int9"}, 2, {"int9", "int8"}},
      {{"llama-3-8b", "--kv-cache-dtype", "int8/"}, 2, {"int8/"}},
      {{"llama-3-8b", "--requests", "0"}, 2, {"--requests", "0"}},
      {{"llama-3-8b", "--length", "1000000000000"}, 2, {"--length", "1000000000000"}},
      {{"llama-3-8b", "--block-size", "17"}, 2, {"--block-size", "17"}},
      {{"llama-3-8b", "--memory", "much"}, 2, {"--memory", "much"}},
      {{"llama-3-8b", "--set", "kv_heads"}, 2, {"kv_heads", "KEY=VALUE"}},
      {{"llama-3-8b", "--set", "kv_haeds=8"}, 4, {"kv_haeds", "kv_heads"}},
      {{"llama-3-8b", "--set", "kv_heads=5"}, 4, {"kv_heads", "5"}},
      {{"llama-3-8b", "--set", "layers=0"}, 4, {"layers", "0"}},
      {{"llama-3-8b", "--set", "layers=16", "--memory", "80GiB"}, 4, {"how many weights", "--set parameters=70B"}},
      {{"llama-3-8b", "--set", "family=qwen2"}, 2, {"family", "config.json"}},
      {{broken, "--set", "family=none"}, 4, {"family", "none"}},
      {{"llama-3-8b", "--efficiency", "0.5"}, 2, {"--efficiency", "--bandwidth"}},
      {{"llama-3-8b", "--peak", "100"}, 2, {"--peak", "--bandwidth"}},
      {{"llama-3-8b", "--prompt-length", "100"}, 2, {"--prompt-length", "--n"}},
      {{"llama-3-8b", "--compute", "f32"}, 2, {"--compute", "--record"}},
      {{"llama-3-8b", "--launch", "--record"}, 2, {"--launch", "--record FILE"}},
      {{"llama-3-8b", "--device", "this*2"}, 2, {"this*2", "several machines"}},
  };
  for (const auto& one : cases) {
    const ProgramRun run = run_plan(one.arguments);
    EXPECT_EQ(run.exit_code, one.code) << one.arguments.back() << ": " << run.err;
    EXPECT_EQ(run.out, "");
    for (const std::string& word : one.words) EXPECT_THAT(run.err, HasSubstr(word)) << one.arguments.back();
  }
}

// Rows "| `kvasir plan ...` | `key` | number |" of the pages about capacity.
TEST(Plan, NumbersInTheDocsAreWhatItTells) {
  const std::regex row(R"(`kvasir plan ([^`]+)` \| `(\w+)` \| (\d+) \|)");
  for (const char* page : {"capacity.md", "claims.md"}) {
    std::ifstream file(std::string(KVASIR_SOURCE_DIR "/docs/") + page);
    int rows = 0;
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, row)) continue;
      std::istringstream words(found[1]);
      std::vector<std::string> arguments{"plan"};
      for (std::string word; words >> word;) arguments.push_back(word);
      arguments.emplace_back("--json");
      const ProgramRun run = run_program(arguments);
      const json plan = json::parse(run.out, nullptr, false);
      ASSERT_TRUE(plan.is_object()) << line << run.err;
      EXPECT_EQ(plan.value(found[2], json()), json(std::stoull(found[3]))) << page << ": " << line;
      ++rows;
    }
    EXPECT_GE(rows, 8) << page;
  }
}

// What a stranger's file holds does not reach the terminal as it is, and is not left out of the sum.
TEST(Plan, AFilesOwnWordsAndTensorsAreShown) {
  std::string text = kSmallConfig;
  text.insert(1, "\"_name_or_path\": \"\\u001b[31mred\\nline\", ");
  EXPECT_THAT(run_plan({config(text), "--length", "10"}).out, AllOf(HasSubstr("\\x1b[31mred\\nline"), testing::Not(HasSubstr("\x1b"))));
  TinyModelSpec spec = TinyModelSpec::gqa();
  spec.extra = "position_embd.weight";
  const std::string path = scratch_path("extra.gguf");
  write_tiny_model(spec, path);
  EXPECT_EQ(planned({path, "--length", "10"})["weights_bytes"], planned({tiny(), "--length", "10"})["weights_bytes"].get<std::uint64_t>() + 64 * 4);
}

// Sizes beyond any machine are counted, not allocated, and never wrap around.
TEST(Plan, HugeBuffersAreCounted) {
  std::uint64_t last = 0;
  for (const char* threads : {"1", "6", "64", "1024"}) {
    const json plan = planned({"llama-3-8b", "--length", "2147483647", "--threads", threads});
    std::uint64_t activations = 0;
    for (const json& line : plan["lines"]) activations += line["name"] == "activations" ? line["bytes"].get<std::uint64_t>() : 0;
    EXPECT_GT(activations, last) << threads;
    last = activations;
  }
  EXPECT_TRUE(planned({"kimi-k3", "--length", "1000"})["warnings"].dump().find("how many weights") != std::string::npos);
}

TEST(Plan, WarnsOfWhatPeopleForget) {
  EXPECT_THAT(planned({"llama-2-7b", "--length", "5000"})["warnings"].dump(), HasSubstr("beyond the 4096 tokens"));
  EXPECT_THAT(planned({"llama-2-7b", "--length", "257", "--block-size", "256"})["warnings"].dump(), HasSubstr("blocks of 256 tokens leave 49.8 %"));
  EXPECT_EQ(planned({"llama-3-8b", "--length", "4096"})["warnings"].size(), 0u);
}

}  // namespace
}  // namespace kvasir::test
