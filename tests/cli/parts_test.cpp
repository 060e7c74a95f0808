#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_cases.hpp"
#include "cli/exit_code.hpp"
#include "cli/model_argument.hpp"
#include "cli/no_cache_bench.hpp"
#include "cli/option_values.hpp"

namespace kvasir::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ModelArgument, SplitsAtSpacesOutsideQuotes) {
  EXPECT_THAT(*split_words("a.gguf --stop 'x y' \"\"  -v"), ElementsAre("a.gguf", "--stop", "x y", "", "-v"));
  EXPECT_THAT(*split_words(""), ElementsAre());
  const auto unclosed = split_words("a 'b");
  ASSERT_FALSE(unclosed.ok());
  EXPECT_EQ(unclosed.error().code, ErrorCode::usage);
}

TEST(ModelArgument, APathAloneHasNoOptions) {
  EXPECT_FALSE(has_options("models/my model.gguf"));
  EXPECT_TRUE(has_options("models/x.gguf --threads 2"));
}

// A validator's message, empty if the text is fine; `text` becomes what it was turned into.
std::string check(const CLI::Validator& validator, std::string& text) { return validator(text); }

TEST(OptionValues, WholeNumbersAreDecimalAndInRange) {
  for (std::string text : {"1", "1024"}) EXPECT_EQ(check(whole_number(1, 1024), text), "") << text;
  for (std::string text : {"0", "1025", "-1", "+1", "1.0", "0x1", "", " 1", "1 ", "99999999999999999999999"}) {
    EXPECT_THAT(check(whole_number(1, 1024), text), HasSubstr("from 1 to 1024")) << text;
  }
}

TEST(OptionValues, NumbersAreFiniteAndInRange) {
  for (std::string text : {"0", "0.5", "1e-3", "2"}) EXPECT_EQ(check(number(0, 2), text), "") << text;
  for (std::string text : {"-0.1", "2.1", "nan", "inf", "", "1,5"}) EXPECT_THAT(check(number(0, 2), text), HasSubstr("from 0 to 2")) << text;
}

TEST(OptionValues, SizesBecomeBytes) {
  std::string text = "1.5G";
  EXPECT_EQ(check(byte_size(), text), "");
  EXPECT_EQ(text, "1610612736");
  for (std::string bad : {"", "G", "-1M", "0", "12Q"}) EXPECT_NE(check(byte_size(), bad), "") << bad;
}

TEST(OptionValues, ListsNameTheBadPart) {
  std::string text = "64,128";
  EXPECT_EQ(check(number_list(1, 999), text), "");
  EXPECT_THAT(split_numbers(text), ElementsAre(64u, 128u));
  std::string bad = "64,,128";
  EXPECT_THAT(check(number_list(1, 999), bad), HasSubstr("'' in '64,,128'"));
}

TEST(BenchCases, PeersAreTheSixOfThePeersTool) {
  const auto cases = parse_bench_cases("peers");
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 6u);
  EXPECT_EQ((*cases)[2].prompt, 7900u);
  EXPECT_EQ((*cases)[2].new_tokens(), 129u);
  EXPECT_EQ((*cases)[5].sequences, 32u);
  EXPECT_EQ((*cases)[5].new_tokens(), 33u);
}

TEST(BenchCases, MalformedOnesAreNamed) {
  EXPECT_EQ(parse_bench_cases("2x16,1x8")->size(), 2u);
  for (const char* text : {"", "8", "0x8", "8x0", "8x", "x8", "8x8,", "8x8x8", "9999x1", "1x2097152"}) {
    EXPECT_FALSE(parse_bench_cases(text).ok()) << text;
  }
}

TEST(BenchCases, RandomPromptsStayInTheVocabularyAndRepeat) {
  const auto ids = random_prompt(7, 1000, 49'152);
  EXPECT_EQ(ids, random_prompt(7, 1000, 49'152));
  EXPECT_NE(ids, random_prompt(8, 1000, 49'152));
  EXPECT_THAT(ids, testing::Each(testing::AllOf(testing::Ge(300), testing::Lt(40'000))));
  EXPECT_THAT(random_prompt(7, 1000, 288), testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(288))));
}

TEST(NoCacheBench, ClosedFormsEqualTheSumsTheyStandFor) {
  for (std::uint64_t length = 1; length <= 40; ++length) {
    std::uint64_t cached_pairs = 0, rows = 0, pairs = 0;
    for (std::uint64_t fed = 1; fed <= length; ++fed) {   // token number `fed` is computed
      cached_pairs += fed;
      rows += fed;                                        // without a cache all of 1 .. fed again
      for (std::uint64_t row = 1; row <= fed; ++row) pairs += row;
    }
    EXPECT_EQ(cached_closed_form(length).rows, length);
    EXPECT_EQ(cached_closed_form(length).pairs, cached_pairs);
    EXPECT_EQ(uncached_closed_form(length).rows, rows);
    EXPECT_EQ(uncached_closed_form(length).pairs, pairs);
  }
}

TEST(NoCacheBench, OperationsFollowTheShape) {
  artifact::ModelGeometry g;
  g.layers = 2;
  g.width = 8;
  g.heads = 2;
  g.kv_heads = {1, 1};
  g.head_dim = 4;
  g.feed_forward = 16;
  EXPECT_EQ(projection_flops_per_row(g), 2.0 * 2 * (8 * 8 + 8 * 8 + 2 * 8 * 4 + 3 * 8 * 16));
  EXPECT_EQ(attention_flops_per_pair(g), 2.0 * 2 * 2 * 2 * 4);
}

TEST(ExitCodes, FollowTheContract) {
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  for (const ErrorCode code : {ErrorCode::bad_input, ErrorCode::unsupported, ErrorCode::does_not_fit}) EXPECT_EQ(exit_code(code), 4);
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::exhausted, ErrorCode::internal, ErrorCode::cancelled}) EXPECT_EQ(exit_code(code), 1);
}

}  // namespace
}  // namespace kvasir::cli
