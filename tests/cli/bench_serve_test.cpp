// `kvasir bench serve` as a person and as a script use it, against a server in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/client/fake_server.hpp"

namespace kvasir::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

void openai(const FakeRequest& request, FakeReply& reply) {
  if (request.target == "/v1/models") return reply.respond(200, R"({"object":"list","data":[{"id":"tiny"}]})");
  const Json body = Json::parse(request.body);
  const std::size_t prompt = body.contains("prompt") && body["prompt"].is_array() ? body["prompt"].size() : 7;
  stream_answer(reply, request.target == "/v1/chat/completions", body["max_tokens"], prompt);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ProgramRun bench_serve(const std::string& url, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "bench", "serve", url, "--num-prompts", "5", "--random-input-len", "9", "--random-output-len", "3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

TEST(BenchServeCommand, JsonHasTheKeysOfVllmBenchServe) {
  FakeServer server(openai);
  const ProgramRun run = bench_serve(server.url() + "/v1", {"--json", "--goodput", "ttft:60000", "tpot:60000"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out);
  for (const char* key : {"date",
                          "backend",
                          "model_id",
                          "num_prompts",
                          "request_rate",
                          "duration",
                          "completed",
                          "failed",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "input_lens",
                          "output_lens",
                          "ttfts",
                          "itls",
                          "errors",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "p99_tpot_ms",
                          "p99_itl_ms",
                          "p99_e2el_ms"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result["backend"], "openai");
  EXPECT_EQ(result["model_id"], "tiny");
  EXPECT_EQ(result["completed"], 5);
  EXPECT_EQ(result["total_input_tokens"], 45);
  EXPECT_EQ(result["total_output_tokens"], 15);
  EXPECT_GT(result["request_goodput"], 0);
  EXPECT_FALSE(result.contains("generated_texts"));
}

TEST(BenchServeCommand, ChatTableAndFiles) {
  FakeServer server(openai);
  const std::string folder = scratch_path("results"), page = scratch_path("page/latency.html");
  const ProgramRun run =
      bench_serve(server.url(), {"--backend", "openai-chat", "--model", "given", "--max-concurrency", "2", "--turns",
                                 "2", "--save-result", "--save-detailed", "--result-dir", folder, "--result-filename",
                                 "r.json", "--html", page});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("10 completed, 0 failed"));
  EXPECT_THAT(run.out, HasSubstr("TTFT from schedule"));
  EXPECT_THAT(run.err, HasSubstr("saved " + folder + "/r.json"));
  const Json result = Json::parse(read_file(folder + "/r.json"));
  EXPECT_EQ(result["model_id"], "given");
  EXPECT_EQ(result["generated_texts"], Json(std::vector<std::string>(10, "ttt")));
  EXPECT_THAT(read_file(page), testing::StartsWith("<!doctype html>"));
}

TEST(BenchServeCommand, ATraceGivesLengthsAndArrivals) {
  FakeServer server(openai);
  const std::string trace = std::string(KVASIR_SOURCE_DIR) + "/tests/data/trace/azure_code_first8.csv";
  const ProgramRun run = run_program({"bench", "serve", server.url(), "--trace", trace, "--trace-time-scale", "0.01",
                                      "--trace-length-scale", "0.1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out);
  EXPECT_EQ(result["num_prompts"], 8);
  EXPECT_EQ(result["input_lens"], Json({481, 318, 11, 743, 3, 37, 699, 3}));
  EXPECT_EQ(result["output_lens"], Json({1, 1, 3, 1, 1, 1, 1, 2}));
}

TEST(BenchServeCommand, RefusalsAreCountedAndDoNotFailTheRun) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.number % 2 == 1) return reply.respond(503, R"({"error":{"message":"queue is full"}})");
    openai(request, reply);
  });
  const ProgramRun run = bench_serve(server.url(), {});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 completed, 3 failed"));
  EXPECT_THAT(run.out, HasSubstr("queue is full"));
}

TEST(BenchServeCommand, NothingGoodFails) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.target == "/v1/models") return openai(request, reply);
    reply.respond(400, R"({"error":{"message":"no such parameter"}})");
  });
  const ProgramRun run = bench_serve(server.url(), {});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no request went well; the first failed with http_400: no such parameter"));
}

TEST(BenchServeCommand, NobodyListeningIsSaidPlainly) {
  const std::string address = "127.0.0.1:" + std::to_string(closed_port());
  const ProgramRun run = bench_serve("http://" + address, {});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "kvasir: cannot connect to " + address + ": Connection refused\n");
}

TEST(BenchServeCommand, ExplainsItselfAndBenchStillTakesAModel) {
  const ProgramRun help = run_program({"bench", "serve", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* text : {"URL", "--request-rate", "--burstiness", "--goodput", "--trace", "--max-concurrency"})
    EXPECT_THAT(help.out, HasSubstr(text));
  const ProgramRun above = run_program({"bench", "--help"});
  EXPECT_THAT(above.out, HasSubstr("--cases"));
  EXPECT_THAT(above.out, HasSubstr("serve"));
  const ProgramRun without = run_program({"bench"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("MODEL is required"));
}

struct BadFlags {
  std::string name;
  std::vector<std::string> arguments;
  int exit_code;
  std::vector<std::string> says;
};

void PrintTo(const BadFlags& flags, std::ostream* out) { *out << flags.name; }

class BenchServeBadFlags : public testing::TestWithParam<BadFlags> {};

TEST_P(BenchServeBadFlags, AreExplainedBeforeAnythingIsSent) {
  std::vector<std::string> arguments = {"bench", "serve"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  if (std::ranges::find(arguments, "--model") == arguments.end()) arguments.insert(arguments.end(), {"--model", "m"});
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  for (const std::string& text : GetParam().says) EXPECT_THAT(run.err, HasSubstr(text));
}

const std::string kUrl = "http://127.0.0.1:9";

INSTANTIATE_TEST_SUITE_P(
    Table, BenchServeBadFlags,
    testing::Values(
        BadFlags{"NoUrl", {}, 2, {"URL is required", "kvasir bench serve --help"}},
        BadFlags{"NotAUrl", {"127.0.0.1:8000"}, 2, {"'127.0.0.1:8000'", "valid: http://HOST:PORT"}},
        BadFlags{"Https", {"https://x"}, 4, {"https is not offered"}},
        BadFlags{"NearFlag",
                 {kUrl, "--request-rat", "3"},
                 2,
                 {"unknown option '--request-rat'", "did you mean '--request-rate'"}},
        BadFlags{"Rate", {kUrl, "--request-rate", "0"}, 2, {"--request-rate", "'0'", "positive number nor inf"}},
        BadFlags{"Burstiness", {kUrl, "--burstiness", "-1"}, 2, {"--burstiness", "'-1'"}},
        BadFlags{"Concurrency", {kUrl, "--max-concurrency", "0"}, 2, {"--max-concurrency", "'0'", "1 to"}},
        BadFlags{"RangeRatio", {kUrl, "--random-range-ratio", "1"}, 2, {"--random-range-ratio", "0 to 0.999"}},
        BadFlags{"Backend", {kUrl, "--backend", "tgi"}, 2, {"'tgi'", "openai, openai-chat"}},
        BadFlags{"Endpoint", {kUrl, "--endpoint", "v1/completions"}, 2, {"--endpoint", "'v1/completions'"}},
        BadFlags{"Percentile", {kUrl, "--metric-percentiles", "50,101"}, 2, {"'101' in '50,101'", "0 to 100"}},
        BadFlags{"Metric", {kUrl, "--percentile-metrics", "ttft,latency"}, 2, {"'latency'", "ttft, tpot, itl, e2el"}},
        BadFlags{"Goodput", {kUrl, "--goodput", "ttft=500"}, 2, {"'ttft=500'", "ttft:MS"}},
        BadFlags{"Header", {kUrl, "--header", "no equals"}, 2, {"'no equals'", "KEY=VALUE"}},
        BadFlags{"HeaderSmuggling", {kUrl, "--header", "A=b\r\nC: d"}, 2, {"KEY=VALUE"}},
        BadFlags{"TokenRange", {kUrl, "--random-token-ids", "9,9"}, 2, {"'9,9' is no range"}},
        BadFlags{"ExtraBody", {kUrl, "--extra-body", "top_k=1"}, 2, {"no JSON object: 'top_k=1'"}},
        BadFlags{
            "TokensForChat", {kUrl, "--backend", "openai-chat", "--prompts", "tokens"}, 2, {"chat messages are text"}},
        BadFlags{"TraceWithTurns", {kUrl, "--trace", "x", "--turns", "2"}, 2, {"--turns", "one turn a request"}},
        BadFlags{"ScaleWithoutTrace", {kUrl, "--trace-time-scale", "2"}, 2, {"--trace-time-scale", "--trace"}},
        BadFlags{"NoTrace", {kUrl, "--trace", "no/such.jsonl"}, 4, {"the trace 'no/such.jsonl' does not exist"}},
        BadFlags{
            "PromptsTwice", {kUrl, "--prompts", "words", "--prompt-file", "x"}, 2, {"--prompt-file", "--prompts"}}),
    [](const testing::TestParamInfo<BadFlags>& entry) { return entry.param.name; });

}  // namespace
}  // namespace kvasir::test
