// Arrivals, lengths, prompts and bodies: all that is decided before the clock starts.
#include "load/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "load/workload.hpp"
#include "stats/quantile.hpp"

namespace kvasir::load {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> gaps(const std::vector<double>& times) {
  std::vector<double> result;
  for (std::size_t i = 1; i < times.size(); ++i) result.push_back(times[i] - times[i - 1]);
  return result;
}

TEST(Arrivals, InfiniteRateIsAllAtOnce) { EXPECT_THAT(draw_arrivals(5, {}), testing::Each(0.0)); }

TEST(Arrivals, InfiniteBurstinessIsConstant) {
  const std::vector<double> times = draw_arrivals(4, {.rate_per_s = 2, .burstiness = kInfinity});
  EXPECT_THAT(times, testing::ElementsAre(0.5, 1.0, 1.5, 2.0));
}

// Gaps of a gamma distribution of shape b have a coefficient of variation of 1 / sqrt(b).
TEST(Arrivals, GapsVaryAsTheBurstinessSays) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const std::vector<double> times = draw_arrivals(20'000, {.rate_per_s = 10, .burstiness = burstiness, .seed = 7});
    EXPECT_TRUE(std::ranges::is_sorted(times));
    EXPECT_DOUBLE_EQ(times.back(), 2000);  // the offered rate is exact
    const stats::Moments moments = stats::moments(gaps(times));
    EXPECT_NEAR(moments.deviation / moments.mean, 1 / std::sqrt(burstiness), 0.06 / std::sqrt(burstiness));
  }
}

TEST(Arrivals, PoissonGapsAreExponential) {
  std::vector<double> sorted = gaps(draw_arrivals(20'000, {.rate_per_s = 1, .seed = 3}));
  std::ranges::sort(sorted);
  for (const double probability : {0.1, 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(stats::quantile(sorted, probability), -std::log(1 - probability),
                0.05 * -std::log(1 - probability) + 0.005);
  }
}

TEST(Arrivals, SeedDecides) {
  EXPECT_EQ(draw_arrivals(50, {.rate_per_s = 1, .seed = 1}), draw_arrivals(50, {.rate_per_s = 1, .seed = 1}));
  EXPECT_NE(draw_arrivals(50, {.rate_per_s = 1, .seed = 1}), draw_arrivals(50, {.rate_per_s = 1, .seed = 2}));
}

TEST(Plan, LengthsAreUniformWithinTheRatioBothEndsIncluded) {
  const Plan plan = plan_random(4000, {}, {.input_tokens = 10, .output_tokens = 1, .range_ratio = 0.25}, {});
  std::map<std::uint32_t, int> inputs, outputs;
  for (const Conversation& conversation : plan.conversations) {
    ++inputs[conversation.turns[0].input_tokens];
    ++outputs[conversation.turns[0].output_tokens];
  }
  ASSERT_EQ(inputs.size(), 7u);  // 7 to 13: 7.5 and 12.5 rounded outwards
  EXPECT_EQ(inputs.begin()->first, 7u);
  for (const auto& [length, count] : inputs) EXPECT_NEAR(count, 4000 / 7, 120) << length;  // five deviations
  EXPECT_EQ(outputs.begin()->first, 1u);                                                   // never 0
  EXPECT_EQ(outputs.rbegin()->first, 2u);
}

trace::Trace small_trace() {
  trace::Trace trace;
  trace.block_tokens = 4;
  trace.requests = {{0.5, 10, 6, {1, 2, 3}}, {2, 9, 3, {1, 2, 4}}, {8, 4, 1, {9}}};
  return trace;
}

TEST(Plan, ATraceGivesArrivalsAndLengthsScaled) {
  const Plan plan = plan_trace(small_trace(), 2, {}, {.time_scale = 0.1, .length_scale = 0.5});
  ASSERT_EQ(plan.conversations.size(), 2u);
  EXPECT_DOUBLE_EQ(plan.conversations[1].arrival_s, 0.2);
  EXPECT_EQ(plan.conversations[0].turns[0].input_tokens, 5u);
  EXPECT_EQ(plan.conversations[0].turns[0].output_tokens, 3u);
  EXPECT_EQ(plan.block_tokens, 2u);
  EXPECT_EQ(plan_trace(small_trace(), 100, {}, {}).conversations.size(), 3u);
}

TEST(Plan, WithARateATraceGivesLengthsAlone) {
  const Plan plan = plan_trace(small_trace(), 3, {.rate_per_s = 1, .burstiness = kInfinity}, {.own_arrivals = false});
  EXPECT_DOUBLE_EQ(plan.conversations[2].arrival_s, 3);
  EXPECT_EQ(plan.conversations[2].turns[0].input_tokens, 4u);
}

std::size_t common_head(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(Prompt, EqualBlocksSayTheSameAndOthersDoNot) {
  const Plan plan = plan_trace(small_trace(), 3, {}, {});
  const PromptSource source = PromptSource::token_ids(0, 1u << 30, 1);
  const auto ids = [&](std::size_t i) { return source.ids(prompt_segments(plan, i, 0, {})); };
  EXPECT_EQ(ids(0).size(), 10u);
  EXPECT_EQ(ids(1).size(), 9u);
  EXPECT_EQ(ids(2).size(), 4u);
  EXPECT_EQ(common_head(ids(0), ids(1)), 8u);
  EXPECT_EQ(common_head(ids(0), ids(2)), 0u);
}

TEST(Prompt, TheSharedPartIsAsLongAsAskedAndTakenInTurn) {
  const Plan plan = plan_random(6, {}, {.input_tokens = 100, .output_tokens = 1}, {});
  const PromptSource source = PromptSource::token_ids(5, 1u << 30, 1);
  const auto ids = [&](std::size_t i) {
    return source.ids(prompt_segments(plan, i, 0, {.prefix_share = 0.4, .prefixes = 3}));
  };
  EXPECT_EQ(ids(0).size(), 100u);
  EXPECT_EQ(common_head(ids(0), ids(3)), 40u);
  EXPECT_EQ(common_head(ids(1), ids(4)), 40u);
  EXPECT_EQ(common_head(ids(0), ids(1)), 0u);
  EXPECT_THAT(ids(2), testing::Each(testing::Ge(5u)));
}

TEST(Prompt, WordsAreOneForEachToken) {
  const std::string text = PromptSource::words(3).text(std::vector<Segment>{{1, 40}, {2, 2}});
  EXPECT_EQ(std::ranges::count(text, ' '), 41);
}

std::string scratch_file(const std::string& name, const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() / ("kvasir-load-" + name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(Prompt, AFileIsCutAtWordsToTheLengthAsked) {
  const std::string path = scratch_file("words.txt", "  one two\n\nthree  four\tfive \xC3\xA9t\xC3\xA9 ");
  const auto source = PromptSource::text_file(path, 4, 1);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const std::string text = source->text(std::vector<Segment>{{1, 10}});
  EXPECT_GE(text.size(), 40u);
  EXPECT_LT(text.size(), 46u);
  const std::set<std::string> words = {"one", "two", "three", "four", "five", "\xC3\xA9t\xC3\xA9"};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    EXPECT_TRUE(words.contains(text.substr(at, end - at))) << text;
    at = end + 1;
  }
  EXPECT_EQ(source->text(std::vector<Segment>{{1, 5}}),
            text.substr(0, source->text(std::vector<Segment>{{1, 5}}).size()));
  std::filesystem::remove(path);
}

TEST(Prompt, AFileThatCannotServeIsNamed) {
  const auto message = [](const std::string& path) { return PromptSource::text_file(path, 4, 1).error().message; };
  EXPECT_EQ(message("no/such.txt"), "the prompt file 'no/such.txt' does not exist");
  const std::string blank = scratch_file("blank.txt", " \n"), bytes = scratch_file("bytes.txt", "ab\xff");
  EXPECT_EQ(message(blank), "the prompt file '" + blank + "' holds no words");
  EXPECT_EQ(message(bytes), "the prompt file '" + bytes + "' is not UTF-8 text");
  std::filesystem::remove(blank);
  std::filesystem::remove(bytes);
}

Json body_of(PromptSource source, const BodyOptions& options, std::vector<std::string> answers = {}) {
  Plan plan = plan_random(1, {}, {.input_tokens = 3, .output_tokens = 7},
                          {.turns = static_cast<std::uint32_t>(answers.size() + 1)});
  const auto workload = Workload::create(std::move(plan), std::move(source), {}, options);
  EXPECT_TRUE(workload.ok());
  return Json::parse(workload->body(0, answers.size(), answers));
}

TEST(Workload, CompletionsBodyIsWhatServersTake) {
  const Json body = body_of(PromptSource::token_ids(4, 9, 1), {.model = "m"});
  EXPECT_EQ(body["model"], "m");
  ASSERT_EQ(body["prompt"].size(), 3u);
  for (const Json& id : body["prompt"]) EXPECT_TRUE(id >= 4 && id < 9);
  EXPECT_EQ(body["max_tokens"], 7);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_FALSE(body.contains("temperature"));
}

TEST(Workload, ChatRepeatsTheConversation) {
  const Json body =
      body_of(PromptSource::words(1), {.api = client::Api::chat, .model = "m", .ignore_eos = false, .temperature = 0.5},
              {"first", "second"});
  ASSERT_EQ(body["messages"].size(), 5u);
  EXPECT_EQ(body["messages"][1], Json({{"role", "assistant"}, {"content", "first"}}));
  EXPECT_EQ(body["messages"][4]["role"], "user");
  EXPECT_NE(body["messages"][4]["content"], body["messages"][0]["content"]);
  EXPECT_EQ(body["max_completion_tokens"], 7);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST(Workload, ExtraKeysWin) {
  const Json body = body_of(PromptSource::words(1), {.model = "m", .extra = R"({"top_k":5,"ignore_eos":false})"});
  EXPECT_EQ(body["top_k"], 5);
  EXPECT_EQ(body["ignore_eos"], false);
}

TEST(Workload, RefusesWhatEndpointsCannotCarry) {
  const auto message = [](const BodyOptions& options, std::uint32_t turns) {
    Plan plan = plan_random(1, {}, {}, {.turns = turns});
    const auto workload = Workload::create(std::move(plan), PromptSource::token_ids(1, 2, 1), {}, options);
    return workload.ok() ? std::string("accepted") : workload.error().message;
  };
  EXPECT_THAT(message({.api = client::Api::chat}, 1), HasSubstr("chat messages are text"));
  EXPECT_THAT(message({}, 2), HasSubstr("a later turn repeats the answer"));
  EXPECT_THAT(message({.extra = "[1]"}, 1), HasSubstr("the extra body is no JSON object: '[1]'"));
}

}  // namespace
}  // namespace kvasir::load
