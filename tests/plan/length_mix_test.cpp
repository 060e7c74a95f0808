// Mixes of lengths from text and traces.
#include "plan/length_mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/mixes.hpp"
#include "trace/reader.hpp"

namespace kvasir::plan {
namespace {

using testing::HasSubstr;

TEST(LengthMix, ReadsAHistogram) {
  const LengthMix mix = test::mix("512:40,2048:35,8192:25");
  ASSERT_EQ(mix.lengths.size(), 3u);
  EXPECT_FALSE(mix.apart);
  EXPECT_EQ(mix.weight(), 100);
  const MixSummary s = summarize(mix);
  EXPECT_DOUBLE_EQ(s.mean, (512 * 40 + 2048 * 35 + 8192 * 25) / 100.0);
  EXPECT_EQ(s.p50, 2048u);
  EXPECT_EQ(s.p90, 8192u);
  EXPECT_EQ(s.longest, 8192u);
}

TEST(LengthMix, ReadsPromptAndOutputApart) {
  const LengthMix mix = test::mix("400+112:0.4,1500+548:0.6");
  EXPECT_TRUE(mix.apart);
  EXPECT_DOUBLE_EQ(summarize(mix).mean_prompt, 400 * 0.4 + 1500 * 0.6);
  EXPECT_DOUBLE_EQ(summarize(mix).mean_output, 112 * 0.4 + 548 * 0.6);
}

TEST(LengthMix, WhatHasNoWeightIsNotThere) { EXPECT_EQ(summarize(test::mix("10:1,99999:0")).longest, 10u); }

// The percentiles asked for come out again, and between them the length grows evenly.
TEST(LengthMix, PercentilesComeOutAgain) {
  const LengthMix mix = test::mix("p50=800,p90=2000,p99=8000,max=16000");
  const MixSummary s = summarize(mix);
  EXPECT_NEAR(static_cast<double>(s.p50), 800, 2);
  EXPECT_NEAR(static_cast<double>(s.p90), 2000, 2);
  EXPECT_NEAR(static_cast<double>(s.p99), 8000, 8);
  // Even growth: the mean of each part is that of its ends.
  EXPECT_NEAR(s.mean,
              0.5 * (1 + 800) / 2 + 0.4 * (800 + 2000) / 2 + 0.09 * (2000 + 8000) / 2 + 0.01 * (8000 + 16000) / 2, 1);
  for (const SequenceLength& one : test::mix("min=5,p50=5,p99.9=7,max=7").lengths) {
    EXPECT_GE(one.length(), 5u);
    EXPECT_LE(one.length(), 7u);
  }
}

TEST(LengthMix, WhatIsWrongIsNamed) {
  const struct {
    std::string text;
    std::vector<std::string> words;
  } cases[] = {
      {"", {"entry 1 ''", "LENGTH:WEIGHT", "p50=800"}},
      {"512", {"entry 1 '512'", "LENGTH:WEIGHT"}},
      {"512:1,", {"entry 2 ''"}},
      {"0:1", {"entry 1", "length is '0'", "1 to 2147483647"}},
      {"-5:1", {"length is '-5'"}},
      {"1000000000000:1", {"'1000000000000'", "2147483647"}},
      {"99999999999999999999:1", {"'99999999999999999999'"}},
      {"5:-1", {"weight is '-1'"}},
      {"5:nan", {"weight is 'nan'"}},
      {"5:inf", {"weight is 'inf'"}},
      {"5:1e16", {"weight is '1e16'", "1e+15"}},
      {"5:0,7:0", {"sum to 0"}},
      {"5:1e15,7:1e15", {"sum to 2e+15"}},
      {"5+0:1", {"output is '0'"}},
      {"0+5:1", {"prompt is '0'"}},
      {"2000000000+2000000000:1", {"4000000000 tokens"}},
      {"5+5:1,7:1", {"entry 2 '7:1'", "in all or in none"}},
      {"p50=9", {"no max"}},
      {"p50=9,p40=10,max=12", {"entry 2 'p40=10'", "ascending"}},
      {"p50=9,p50=10,max=12", {"entry 2 'p50=10'", "ascending"}},
      {"p90=20,p99=10,max=30", {"entry 2 'p99=10'", "10 is below the 20"}},
      {"p0=3,max=9", {"p0=3"}},
      {"p100=3,max=9", {"p100=3"}},
      {"pnan=3,max=9", {"pnan=3"}},
      {"mean=3,max=9", {"mean=3", "min, max"}},
      {"max=9,p50=3", {"entry 2"}},
      {"p50=3,7:1,max=9", {"entry 2 '7:1'"}},
  };
  for (const auto& one : cases) {
    const Result<LengthMix> mix = parse_mix(one.text);
    ASSERT_FALSE(mix.ok()) << one.text;
    for (const std::string& word : one.words) EXPECT_THAT(mix.error().message, HasSubstr(word)) << one.text;
    EXPECT_LT(mix.error().message.size(), 400u);
  }
}

TEST(LengthMix, TenMillionEntriesAreCountedNotRead) {
  const Result<LengthMix> mix = parse_mix(std::string(9'999'999, ','));
  ASSERT_FALSE(mix.ok());
  EXPECT_EQ(mix.error().message, "10000000 entries, valid: at most 1048576");
}

TEST(LengthMix, OfATraceHasEachRequest) {
  const auto trace = trace::read_trace_file(KVASIR_SOURCE_DIR "/tests/data/trace/azure_code_first8.csv");
  ASSERT_TRUE(trace.ok());
  const LengthMix mix = mix_of(*trace).value();
  ASSERT_EQ(mix.lengths.size(), 8u);
  EXPECT_TRUE(mix.apart);
  EXPECT_EQ(mix.lengths[0].prompt, 4808u);
  EXPECT_EQ(mix.lengths[0].output, 10u);
  EXPECT_EQ(mix.arrivals_s[7], trace->requests[7].arrival_s);
  const auto untimed = trace::read_trace_file(KVASIR_SOURCE_DIR "/tests/data/trace/vidur_arxiv_first200.csv");
  EXPECT_TRUE(mix_of(untimed.value()).value().arrivals_s.empty());
  trace::Trace huge;
  huge.requests.resize(kMaxMixLengths + 1, {0, 1, 1, {}});
  EXPECT_THAT(mix_of(huge).error().message, HasSubstr("more than 1048576 requests"));
}

}  // namespace
}  // namespace kvasir::plan
