// Metrics from records alone, and how they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "load/latency_page.hpp"
#include "load/metrics.hpp"
#include "load/result_json.hpp"
#include "load/result_table.hpp"

namespace kvasir::load {
namespace {

using testing::HasSubstr;
constexpr std::uint64_t kMs = 1'000'000, kStart = 5'000'000'000;

// Due, sent, then tokens: ms since the start.
RequestRecord good(std::uint64_t due, std::uint64_t sent, std::vector<std::uint64_t> tokens,
                   std::uint64_t output_tokens) {
  RequestRecord record;
  record.scheduled_ns = kStart + due * kMs;
  record.sent_ns = kStart + sent * kMs;
  for (const std::uint64_t ms : tokens) record.token_ns.push_back(kStart + ms * kMs);
  record.ended_ns = record.token_ns.back();
  record.input_tokens = 10;
  record.output_tokens = output_tokens;
  record.counted_by_server = true;
  record.error_kind.clear();
  return record;
}

RunRecord sample_run() {
  RunRecord run;
  run.started_ns = kStart;
  run.requests = {good(0, 0, {100, 150, 200}, 3), good(0, 50, {250, 350}, 2), good(100, 100, {400}, 1)};
  run.requests.emplace_back();
  run.requests.back().scheduled_ns = run.requests.back().sent_ns = kStart + 100 * kMs;
  run.requests.back().ended_ns = kStart + 500 * kMs;
  run.requests.back().error_kind = "http_503";
  run.requests.back().error_message = "queue is full";
  run.ended_ns = kStart + 500 * kMs;
  for (std::size_t i = 0; i < run.requests.size(); ++i) run.requests[i].conversation = static_cast<std::uint32_t>(i);
  return run;
}

TEST(Metrics, FollowTheirDefinitions) {
  const Metrics metrics = compute_metrics(sample_run(), {.percents = {100}});
  EXPECT_DOUBLE_EQ(metrics.duration_s, 0.5);
  EXPECT_EQ(metrics.completed, 3u);
  EXPECT_EQ(metrics.failed, 1u);
  EXPECT_EQ(metrics.input_tokens, 30u);
  EXPECT_EQ(metrics.output_tokens, 6u);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 12);
  EXPECT_DOUBLE_EQ(metrics.ttft.mean, 0.2);                        // 100, 200, 300 ms
  EXPECT_NEAR(metrics.ttft.deviation, 0.0816496580927726, 1e-12);  // numpy.std([.1, .2, .3])
  EXPECT_DOUBLE_EQ(metrics.ttft_including_client_queue.median.estimate, 0.25);
  EXPECT_EQ(metrics.tpot.count, 2u);           // one token has none
  EXPECT_DOUBLE_EQ(metrics.tpot.mean, 0.075);  // 100 ms / 2, 100 ms / 1
  EXPECT_EQ(metrics.itl.count, 3u);
  EXPECT_DOUBLE_EQ(metrics.itl.mean, 0.2 / 3);
  EXPECT_DOUBLE_EQ(metrics.e2el.percentiles[0].seconds.estimate, 0.3);
  EXPECT_DOUBLE_EQ(metrics.client_queue_time.mean, 0.05 / 3);
  EXPECT_EQ(metrics.max_concurrent_requests, 3u);
  EXPECT_EQ(metrics.max_output_tokens_per_s, 6u);
}

// Usage counts four tokens in two pieces: TPOT is over tokens, ITL over pieces.
TEST(Metrics, TokensAreTheServersNotThePieces) {
  RunRecord run;
  run.started_ns = kStart;
  run.requests = {good(0, 0, {10, 70}, 4)};
  run.ended_ns = kStart + 70 * kMs;
  const Metrics metrics = compute_metrics(run, {});
  EXPECT_EQ(metrics.output_tokens, 4u);
  EXPECT_DOUBLE_EQ(metrics.tpot.mean, 0.02);
  EXPECT_DOUBLE_EQ(metrics.itl.mean, 0.06);
}

TEST(Metrics, GoodputCountsRequestsThatMeetEveryObjective) {
  const auto goodput = [](std::vector<std::string> words) {
    const Metrics metrics = compute_metrics(sample_run(), {.objectives = *parse_objectives(words)});
    return std::pair(metrics.request_goodput * 0.5, metrics.request_goodput_from_schedule * 0.5);
  };
  EXPECT_EQ(goodput({"ttft:200"}),
            std::pair(2.0, 1.0));  // the limit itself is met; the second waited 50 ms before it was sent
  EXPECT_EQ(goodput({"tpot:50"}), std::pair(2.0, 2.0));  // one token: 0
  EXPECT_EQ(goodput({"e2el:300"}), std::pair(3.0, 2.0));
  EXPECT_EQ(goodput({"ttft:500", "tpot:60"}), std::pair(2.0, 2.0));
  EXPECT_EQ(goodput({"ttft:0"}), std::pair(0.0, 0.0));
}

TEST(Metrics, ObjectivesThatCannotBeReadAreNamed) {
  for (const char* word : {"ttft", "ttft:", "ttft:-1", "ttft:x", "itl:5", "ttft:5s", ":5", "ttft:inf"}) {
    const auto objectives = parse_objectives({word});
    ASSERT_FALSE(objectives.ok()) << word;
    EXPECT_THAT(objectives.error().message,
                HasSubstr("'" + std::string(word) + "' is no service level objective; valid: ttft:MS"));
  }
  EXPECT_EQ(parse_objectives({"tpot:5", "tpot:6"}).error().message, "the objective 'tpot' is given twice: 5 and 6");
}

TEST(Metrics, NothingGoodIsAllZeros) {
  RunRecord run = sample_run();
  run.requests.erase(run.requests.begin(), run.requests.begin() + 3);
  const Metrics metrics = compute_metrics(run, {.percents = {50, 99}});
  EXPECT_EQ(metrics.completed, 0u);
  EXPECT_EQ(metrics.ttft.count, 0u);
  ASSERT_EQ(metrics.ttft.percentiles.size(), 2u);
  EXPECT_EQ(metrics.ttft.percentiles[1].seconds.estimate, 0);
}

RunDescription describe() {
  RunDescription description;
  description.date = "20260102-030405";
  description.backend = "openai";
  description.model = "m";
  description.address = "127.0.0.1:8000";
  description.request_rate = std::numeric_limits<double>::infinity();
  description.client_cpu_s = 0.012;
  description.connections_opened = 3;
  description.metric_names = {"ttft", "itl"};
  return description;
}

report::Json json_of(const MetricOptions& options, const RunDescription& description) {
  const RunRecord run = sample_run();
  return result_json(run, compute_metrics(run, options), options, description);
}

TEST(ResultJson, HasTheKeysOfVllmBenchServeInItsOrder) {
  std::vector<std::string> names;
  const report::Json json = json_of({.percents = {50, 99, 99.9}}, describe());
  for (const auto& [name, value] : json.items()) names.push_back(name);
  EXPECT_THAT(
      names,
      testing::ElementsAre(
          "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate",
          "burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens",
          "total_output_tokens", "request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
          "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors",
          "max_output_tokens_per_s", "max_concurrent_requests", "rtfx", "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms",
          "p50_ttft_ms", "p99_ttft_ms", "p99.9_ttft_ms", "mean_itl_ms", "median_itl_ms", "std_itl_ms", "p50_itl_ms",
          "p99_itl_ms", "p99.9_itl_ms", "mean_client_queue_time_ms", "median_client_queue_time_ms",
          "std_client_queue_time_ms", "p50_client_queue_time_ms", "p99_client_queue_time_ms",
          "p99.9_client_queue_time_ms", "mean_ttft_including_client_queue_ms", "median_ttft_including_client_queue_ms",
          "std_ttft_including_client_queue_ms", "p50_ttft_including_client_queue_ms",
          "p99_ttft_including_client_queue_ms", "p99.9_ttft_including_client_queue_ms",
          "mean_e2el_including_client_queue_ms", "median_e2el_including_client_queue_ms",
          "std_e2el_including_client_queue_ms", "p50_e2el_including_client_queue_ms",
          "p99_e2el_including_client_queue_ms", "p99.9_e2el_including_client_queue_ms", "kvasir"));
}

TEST(ResultJson, TellsEveryRequestAndWhatFailed) {
  RunDescription description = describe();
  description.texts = true;
  description.max_concurrency = 8;
  const report::Json json = json_of({.objectives = *parse_objectives({"ttft:200"})}, description);
  EXPECT_EQ(json["num_prompts"], 4);
  EXPECT_EQ(json["request_rate"], "inf");
  EXPECT_EQ(json["max_concurrency"], 8);
  EXPECT_DOUBLE_EQ(json["request_goodput"], 4);
  EXPECT_DOUBLE_EQ(json["median_ttft_ms"], 200);
  EXPECT_EQ(json["output_lens"], report::Json({3, 2, 1, 0}));
  EXPECT_DOUBLE_EQ(json["ttfts"][1], 0.2);
  EXPECT_EQ(json["itls"][2], report::Json::array());
  EXPECT_DOUBLE_EQ(json["queue_times"][1], 0.05);
  EXPECT_EQ(json["errors"], report::Json({"", "", "", "http_503: queue is full"}));
  EXPECT_EQ(json["generated_texts"].size(), 4u);
  EXPECT_EQ(json["kvasir"]["errors_by_kind"], report::Json({{"http_503", 1}}));
  EXPECT_EQ(json["kvasir"]["tokens_counted_by_server"], true);
  EXPECT_DOUBLE_EQ(json["kvasir"]["client_cpu_us_per_token"], 2000);
  EXPECT_LE(json["kvasir"]["intervals"]["p99_ttft_ms"][0], json["p99_ttft_ms"]);
  EXPECT_GE(json["kvasir"]["intervals"]["p99_ttft_ms"][1], json["p99_ttft_ms"]);
}

TEST(ResultJson, WithoutObjectivesThereIsNoGoodput) {
  EXPECT_TRUE(json_of({}, describe())["request_goodput"].is_null());
  EXPECT_TRUE(json_of({}, describe())["max_concurrency"].is_null());
}

TEST(ResultTable, SaysWhatMatters) {
  const RunRecord run = sample_run();
  const MetricOptions options{.percents = {99}, .objectives = *parse_objectives({"ttft:200"})};
  const std::string table = result_table(run, compute_metrics(run, options), options, describe());
  for (const char* text : {"3 completed, 1 failed", "all at once", "30 in (0 cached), 6 out", "goodput",
                           "4.00 requests/s within the objectives", "p99", "TTFT", "ITL", "200 ms [",
                           "95 % bootstrap intervals", "http_503", "queue is full", "12.0 ms of CPU time"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  EXPECT_THAT(table, testing::Not(HasSubstr("TPOT")));  // was not asked for
}

TEST(LatencyPage, StandsAlone) {
  const std::string page = latency_page("m at <host>", "a table", sample_run());
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("m at &lt;host&gt;"));
  EXPECT_THAT(page, HasSubstr("http_503: queue is full"));
  for (const char* outside : {"<script", "src=", "href=", "url(", "@import", "<link"})
    EXPECT_THAT(page, testing::Not(HasSubstr(outside)));
}

}  // namespace
}  // namespace kvasir::load
