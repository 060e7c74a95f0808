// Text, stop strings and end-of-text tokens through a whole engine.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.hpp"
#include "tests/engine/tiny_engine.hpp"
#include "text/detokenizer.hpp"
#include "text/utf8.hpp"

namespace kvasir::engine::test {
namespace {

GenerateRequest wordy(std::uint32_t max_tokens, std::uint64_t seed) {
  GenerateRequest request = request_of(random_prompt(12, seed), max_tokens);
  request.sampling = {.temperature = 1.0f, .seed = seed};
  request.ignore_eos = true;
  return request;
}

TEST(Answer, TextIsTheTokensText) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const auto tokenizer = tiny_tokenizer();
  const Answered a = answer(*engine, wordy(100, 3));
  EXPECT_FALSE(text::first_invalid_utf8(a.text));
  text::Detokenizer detokenizer(*tokenizer);
  std::string expected;
  for (const TokenId token : a.tokens) expected += detokenizer.push(token);
  expected += detokenizer.finish();
  EXPECT_EQ(a.text, expected);
}

// Known fault B34, end to end: each stop string is a piece of an answer already known.
TEST(Answer, EndsBeforeAStopString) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const Answered whole = answer(*engine, wordy(60, 5));
  ASSERT_GT(whole.text.size(), 20u);
  for (std::size_t at = 0; at + 8 < whole.text.size(); ++at) {
    const std::string stop = whole.text.substr(at, 4);
    if (text::first_invalid_utf8(stop)) continue;
    GenerateRequest request = wordy(60, 5);
    request.stop = {"no such text", stop};
    const Answered cut = answer(*engine, request);
    EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(stop)));
    EXPECT_EQ(cut.finish, FinishReason::stop);
    EXPECT_EQ(cut.stop_index, 1);
    EXPECT_EQ(engine->accounting().active_bytes, 0u);
    request.include_stop = true;
    EXPECT_EQ(answer(*engine, request).text, whole.text.substr(0, whole.text.find(stop) + stop.size()));
  }
}

TEST(Answer, HeldTextIsDeliveredWhenTheBudgetEnds) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const Answered whole = answer(*engine, wordy(60, 5));
  GenerateRequest request = wordy(60, 5);
  std::string tail = whole.text.substr(whole.text.size() - 3);
  while (text::first_invalid_utf8(tail)) tail.erase(0, 1);
  request.stop = {tail + "never"};
  const Answered again = answer(*engine, request);
  EXPECT_EQ(again.text, whole.text);
  EXPECT_EQ(again.finish, FinishReason::length);
}

// A stop token ends it whatever ignore_eos says, and its text is kept only with include_stop.
TEST(Answer, StopTokensEndIt) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const auto tokenizer = tiny_tokenizer();
  const Answered whole = answer(*engine, wordy(60, 5));
  for (const std::size_t at : {0u, 7u, 30u}) {
    const TokenId stop = whole.tokens[at];
    const std::size_t first = static_cast<std::size_t>(std::ranges::find(whole.tokens, stop) - whole.tokens.begin());
    GenerateRequest request = wordy(60, 5);
    request.sampling.stop_token_ids = {287, stop};
    for (const bool include : {false, true}) {
      request.include_stop = include;
      const Answered cut = answer(*engine, request);
      EXPECT_EQ(cut.tokens, std::vector<TokenId>(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(first) + 1));
      EXPECT_EQ(cut.finish, FinishReason::stop);
      EXPECT_EQ(cut.stop_index, -1);
      text::Detokenizer detokenizer(*tokenizer);
      std::string expected;
      for (std::size_t i = 0; i < first + include; ++i) expected += detokenizer.push(whole.tokens[i]);
      EXPECT_EQ(cut.text, expected + detokenizer.finish());
    }
  }
}

TEST(Answer, EndOfTextTokensEndItUnlessIgnored) {
  auto engine = make_engine(shared_gqa(), pool_of(32), true);
  const auto tokenizer = tiny_tokenizer();
  int ended = 0;
  for (std::uint64_t seed = 0; seed < 40 && ended < 3; ++seed) {
    GenerateRequest request = wordy(100, seed);
    const Answered ignored = answer(*engine, request);
    ASSERT_EQ(ignored.finish, FinishReason::length);
    ASSERT_EQ(ignored.tokens.size(), 100u);
    std::size_t first = 0;
    while (first < 100 && !tokenizer->is_eog(ignored.tokens[first])) ++first;
    request.ignore_eos = false;
    const Answered a = answer(*engine, request);
    if (first == 100) {
      EXPECT_EQ(a.tokens, ignored.tokens);
      continue;
    }
    ++ended;
    EXPECT_EQ(a.finish, FinishReason::stop);
    EXPECT_EQ(a.stop_index, -1);
    EXPECT_EQ(a.tokens.size(), first + 1);
    EXPECT_TRUE(std::equal(a.tokens.begin(), a.tokens.end(), ignored.tokens.begin()));
  }
  EXPECT_EQ(ended, 3) << "random tokens of 288 meet an end-of-text token soon";
}

}  // namespace
}  // namespace kvasir::engine::test
