#include "text/detokenizer.hpp"

#include <gtest/gtest.h>

#include "tests/text/vocabularies.hpp"

namespace kvasir::text {
namespace {

class DetokenizerTest : public testing::Test {
 protected:
  Tokenizer tokenizer_ = tokenizer_of(byte_vocabulary({{"<|im_end|>", 3}})).value();

  // What each byte releases, joined with '|', the rest after the last one.
  std::string stream(std::string_view bytes) {
    Detokenizer detokenizer(tokenizer_);
    std::string out;
    for (const TokenId id : bytes_as_ids(bytes)) out += detokenizer.push(id) + "|";
    return out + detokenizer.finish();
  }
};

TEST_F(DetokenizerTest, HoldsCharactersUntilTheyAreWhole) {
  EXPECT_EQ(stream("aé"), "a||é|");
  EXPECT_EQ(stream("中x"), "||中|x|");
  EXPECT_EQ(stream("😀"), "|||😀|");
}

// The Unicode standard's example of table 3-8: one replacement for each maximal part.
TEST_F(DetokenizerTest, IllFormedPartsBecomeReplacements) {
  EXPECT_EQ(stream("\xFF"
                   "a"),
            "\uFFFD|a|");
  EXPECT_EQ(stream("\xC3"), "|\uFFFD");
  EXPECT_EQ(stream("\xF0\x9F\x98"), "|||\uFFFD");
  EXPECT_EQ(stream("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "||\uFFFD|\uFFFD|||\uFFFD||\uFFFDA|");
  EXPECT_EQ(stream("\xED\xA0\x80"), "|\uFFFD\uFFFD|\uFFFD|");
}

TEST_F(DetokenizerTest, SpecialTokensYieldTextOnlyIfAsked) {
  Detokenizer skips(tokenizer_), shows(tokenizer_, false);
  EXPECT_EQ(skips.push(256), "");
  EXPECT_EQ(shows.push(256), "<|im_end|>");
}

TEST_F(DetokenizerTest, IsAsNewAfterFinish) {
  Detokenizer detokenizer(tokenizer_);
  EXPECT_EQ(detokenizer.push(0xE4), "");
  EXPECT_EQ(detokenizer.pending_bytes(), 1u);
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.pending_bytes(), 0u);
  EXPECT_EQ(detokenizer.push('x'), "x");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST_F(DetokenizerTest, StreamEqualsDecode) {
  const Tokenizer tokenizer = load_tokenizer(data_path("vocab-gpt-2.gguf"));
  const std::string text = "Ĝis 人人 👩‍👩‍👧 नमस्ते\r\n";
  Detokenizer detokenizer(tokenizer);
  std::string streamed;
  const std::vector<TokenId> ids = tokenizer.encode(text).value();
  for (const TokenId id : ids) {
    streamed += detokenizer.push(id);
    EXPECT_FALSE(first_invalid_utf8(streamed).has_value());
  }
  EXPECT_EQ(streamed + detokenizer.finish(), text);
}

}  // namespace
}  // namespace kvasir::text
