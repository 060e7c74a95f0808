// kvasir plan --lengths, as a person and as a program uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/cli/run_plan.hpp"

namespace kvasir::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kSource = KVASIR_SOURCE_DIR;
const std::string kConv = kSource + "/tests/data/trace/azure_conv_first200.csv";

TEST(PlanMix, TellsWhatProgramsRelyOn) {
  const json told =
      planned({"llama-3.1-8b", "--lengths", kConv, "--requests", "32", "--length", "8192", "--memory", "80GB"});
  EXPECT_EQ(told["length"], 8192);
  EXPECT_EQ(told["mix"]["sequences"], 200);
  EXPECT_EQ(told["mix"]["allowed_length"], 8192);
  EXPECT_EQ(told["mix"]["prompt_and_output"], true);
  EXPECT_EQ(told["mix"]["sequences_that_fit"], told["max_sequences"]);
  EXPECT_LT(told["mix"]["sequences_that_fit_p99"], told["max_sequences"]);
  EXPECT_GT(told["mix"]["kv_bytes_p99"], told["kv_bytes"]);
  EXPECT_TRUE(told["longest_length"].is_null());
  ASSERT_EQ(told["reservation"].size(), 6u);
  EXPECT_EQ(told["reservation"][0]["policy"], "contiguous_max");
  EXPECT_EQ(told["reservation"][5]["concurrency"], 1.0);
  for (const char* what : {"sequences", "tokens", "blocks", "bytes"}) {
    const json& held = told["occupancy"][what];
    EXPECT_LE(held["p50"], held["p95"]);
    EXPECT_LE(held["p95"], held["p99"]);
    EXPECT_LE(held["p99"], held["max"]);
    EXPECT_GT(held["mean"], 0);
  }
  const json without = planned({"llama-3.1-8b"});
  for (const char* key : {"mix", "reservation", "occupancy"}) EXPECT_TRUE(without[key].is_null()) << key;
  const json untimed = planned({"llama-3.1-8b", "--lengths", kSource + "/tests/data/trace/vidur_arxiv_first200.csv"});
  EXPECT_TRUE(untimed["occupancy"].is_null()) << "nobody said when they arrive";
}

TEST(PlanMix, ShowsTablesAndSaysNo) {
  const ProgramRun run = run_plan({"llama-3.1-8b", "--lengths", kConv, "--requests", "4000", "--memory", "80GB"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.out, AllOf(HasSubstr("Does not fit in"), HasSubstr("of the mix"),
                             HasSubstr("contiguous, longest allowed"), HasSubstr("blocks, as they fill"),
                             HasSubstr("in 99 of 100 draws"), HasSubstr("Arrivals as recorded")));
  const std::string strange = scratch_path("a\x1b[31mb.csv");
  std::filesystem::copy_file(kConv, strange);
  EXPECT_THAT(run_plan({"llama-3.1-8b", "--lengths", strange}).out, testing::Not(HasSubstr("\x1b")));
}

TEST(PlanMix, WarnsWithNumbers) {
  const std::string warnings =
      planned({"gemma-3-27b", "--lengths", "500:9,60000:1", "--requests", "10"})["warnings"].dump();
  EXPECT_THAT(warnings, AllOf(HasSubstr("reserving the longest allowed length, 131072 tokens, for each sequence takes"),
                              HasSubstr("mean length x sequences gives"),
                              HasSubstr("one draw in 100 of 10 sequences takes over")));
  EXPECT_EQ(planned({"llama-3.1-8b", "--lengths", "1024:1", "--length", "1024"})["warnings"].size(), 0u);
}

TEST(PlanMix, ADeviceGivesTheMemoryAndOneLengthOnlyAnswersAreRefused) {
  const json plan = planned({"llama-3.1-8b", "--lengths", "512:1,2048:1", "--device", "a100-80gb", "--target-itl", "50"});
  EXPECT_EQ(plan["memory_bytes"], 84'974'501'888);
  EXPECT_EQ(plan["max_sequences"], plan["mix"]["sequences_that_fit"]);
  EXPECT_EQ(plan["total_bytes"].get<std::uint64_t>() + plan["free_bytes"].get<std::uint64_t>(), 84'974'501'888u);
  const json mean = planned({"llama-3.1-8b", "--length", "1280", "--device", "a100-80gb", "--target-itl", "50"});
  EXPECT_EQ(plan["roofline"]["decode"], mean["roofline"]["decode"]) << "a step looks back on the mean length";
  for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{{"--what-if", "each"}, {"--html", "x.html"}, {"--n", "2", "--prompt-length", "8"}, {"--speculative-tokens", "3"}, {"--tp", "2"}}) {
    std::vector<std::string> arguments = {"plan", "llama-3.1-8b", "--lengths", "512:1,2048:1"};
    arguments.insert(arguments.end(), other.begin(), other.end());
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << other.front();
    EXPECT_THAT(run.err, HasSubstr("--lengths")) << other.front();
  }
}

TEST(PlanMix, WhatIsWrongIsNamed) {
  const std::string bad = scratch_path("bad.csv");
  std::ofstream(bad) << "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,5,-1\n";
  const struct {
    std::vector<std::string> arguments;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {{"--lengths", ""}, 2, {"--lengths"}},
      {{"--lengths", "512:0"}, 2, {"--lengths", "sum to 0"}},
      {{"--lengths", "512:-1"}, 2, {"--lengths", "'512:-1'", "'-1'"}},
      {{"--lengths", "1000000000000:1"}, 2, {"--lengths", "1000000000000", "2147483647"}},
      {{"--lengths", "p90=9,p50=10,max=20"}, 2, {"--lengths", "p50=10", "ascending"}},
      {{"--lengths", "no/such.csv"}, 4, {"no/such.csv"}},
      {{"--lengths", bad}, 4, {"GeneratedTokens", "-1"}},
      {{"--lengths", "512:1,4096:1", "--length", "4000"}, 2, {"--length", "4000", "4096"}},
      {{"--lengths", "512:1", "--request-rate", "5"}, 2, {"--request-rate", "400+112:40"}},
      {{"--lengths", "500+12:1", "--request-rate", "0"}, 2, {"--request-rate", "0"}},
      {{"--lengths", "500+12:1", "--request-rate", "1000000"}, 2, {"--request-rate", "valid: at most"}},
      {{"--lengths", "500+12:1", "--itl", "0"}, 2, {"--itl", "0"}},
      {{"--lengths", "500+12:1", "--prefill-speed", "fast"}, 2, {"--prefill-speed", "fast"}},
      {{"--lengths", "512:1", "--what-if", "each"}, 2, {"--lengths", "--what-if"}},
      {{"--request-rate", "5"}, 2, {"--request-rate", "--lengths"}},
  };
  for (const auto& one : cases) {
    std::vector<std::string> arguments{"llama-3.1-8b"};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const ProgramRun run = run_plan(arguments);
    EXPECT_EQ(run.exit_code, one.code) << one.arguments.back() << ": " << run.err;
    EXPECT_EQ(run.out, "");
    for (const std::string& word : one.words) EXPECT_THAT(run.err, HasSubstr(word)) << one.arguments.back();
  }
}

// The file that a command of the docs names: in the source tree, or among the shared traces; empty if it is not here.
std::string found_file(const std::string& name) {
  if (std::filesystem::exists(kSource + "/" + name)) return kSource + "/" + name;
  const char* shared = std::getenv("KVASIR_SHARED");
  const std::string path = shared == nullptr ? "" : std::string(shared) + "/data/" + name;
  return std::filesystem::exists(path) ? path : "";
}

// Rows "| `kvasir plan ...` | `/pointer/to/key` | number |" of the pages about capacity, as many digits as they print.
TEST(PlanMix, NumbersInTheDocsAreWhatItTells) {
  const std::regex row(R"(`kvasir plan ([^`]+)` \| `(/[\w/]+)` \| ([\d.]+) \|)");
  std::map<std::vector<std::string>, json> answers;
  int checked = 0;
  for (const char* page : {"capacity.md", "claims.md"}) {
    std::ifstream file(kSource + "/docs/" + page);
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, row)) continue;
      std::istringstream words(found[1]);
      std::vector<std::string> arguments;
      bool here = true;
      for (std::string word; words >> word;) {
        const bool file_name = word.ends_with(".csv") || word.ends_with(".jsonl");
        arguments.push_back(file_name ? found_file(word) : word);
        here = here && !arguments.back().empty();
      }
      if (!here) continue;
      const auto [answer, fresh] = answers.try_emplace(arguments);
      if (fresh) answer->second = planned(arguments);
      const json& told = answer->second;
      ASSERT_TRUE(told.is_object()) << line;
      const json number = told.value(json::json_pointer(found[2]), json());
      ASSERT_TRUE(number.is_number()) << line;
      const std::string printed = found[3];
      const std::size_t point = printed.find('.');
      const double unit =
          point == std::string::npos ? 1 : std::pow(10, -static_cast<double>(printed.size() - point - 1));
      EXPECT_NEAR(number.get<double>(), std::stod(printed), 0.5 * unit + 1e-9) << page << ": " << line;
      ++checked;
    }
  }
  EXPECT_GE(checked, 12) << "those that need no shared trace";
}

}  // namespace
}  // namespace kvasir::test
