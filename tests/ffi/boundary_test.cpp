// What crosses into Rust comes back as a value or an Error; a panic there is an Error here.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ffi/bpe.hpp"
#include "ffi/call.hpp"
#include "ffi/template.hpp"

namespace kvasir::ffi {
namespace {

using Texts = std::vector<std::string_view>;

TEST(Boundary, APanicBecomesAnInternalError) {
  const Status result = status(kv_test_panic(), ErrorCode::bad_input);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::internal);
  EXPECT_EQ(result.error().message, "panic: on purpose");
}

TEST(Bpe, MergesBestFirst) {
  const Texts tokens = {"a", "b", "c", "ab", "bc", "abc"}, merges = {"b c", "a b", "a bc"};
  const auto bpe = Bpe::create(tokens, merges, "gpt-2", false);
  ASSERT_TRUE(bpe.ok()) << bpe.error().message;
  EXPECT_EQ(bpe->encode("abc").value(), (std::vector<TokenId>{5}));
  EXPECT_EQ(bpe->encode("abab").value(), (std::vector<TokenId>{3, 3}));
  EXPECT_TRUE(bpe->encode("").value().empty());
}

TEST(Bpe, OfTwoEqualMergesTheFirstCounts) {
  const Texts tokens = {"a", "b", "c", "ab", "bc"}, merges = {"a b", "b c", "a b"};
  const auto bpe = Bpe::create(tokens, merges, "gpt-2", false);
  ASSERT_TRUE(bpe.ok()) << bpe.error().message;
  EXPECT_EQ(bpe->encode("abc").value(), (std::vector<TokenId>{3, 2}));
}

TEST(Bpe, WholeWordsGoBeforeMerges) {
  const Texts tokens = {"a", "b", "c", "bc", "abc"}, merges = {"b c"};
  EXPECT_EQ(Bpe::create(tokens, merges, "gpt-2", false).value().encode("abc").value(), (std::vector<TokenId>{0, 3}));
  EXPECT_EQ(Bpe::create(tokens, merges, "gpt-2", true).value().encode("abc").value(), (std::vector<TokenId>{4}));
}

TEST(Bpe, RefusesBrokenVocabulariesByKeyAndIndex) {
  const auto refusal = [](const Texts& tokens, const Texts& merges, std::string_view pre) {
    const auto bpe = Bpe::create(tokens, merges, pre, false);
    return bpe.ok() ? std::string("accepted") : bpe.error().message;
  };
  EXPECT_EQ(refusal({"a", "b"}, {"a b"}, "gpt-2"),
            "tokenizer.ggml.merges[0] is \"a b\", but \"ab\" is no text token of the vocabulary");
  EXPECT_EQ(refusal({"a"}, {"ab"}, "gpt-2"),
            "tokenizer.ggml.merges[0] is \"ab\"; valid: two tokens with a space between");
  EXPECT_EQ(refusal({"a", "\xFF"}, {}, "gpt-2"), "tokenizer.ggml.tokens[1] is not UTF-8 at byte 0");
  EXPECT_EQ(refusal({"a"}, {}, "gpt-9"), "tokenizer.ggml.pre \"gpt-9\" is not offered");
}

TEST(Bpe, EveryListedPreTokenizerIsKnown) {
  for (const std::string_view name : Bpe::pre_tokenizers()) {
    EXPECT_TRUE(Bpe::create(Texts{"a"}, Texts{}, name, false).ok()) << name;
  }
}

TEST(Template, ResultsAreBounded) {
  const auto source = Template::create("{% for i in range(1000) %}xxxxxxxxxx{% endfor %}");
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->render({}, 10'000).value().size(), 10'000u);
  const auto cut = source->render({}, 9'999);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("larger than 9999 bytes"), std::string::npos) << cut.error().message;
}

}  // namespace
}  // namespace kvasir::ffi
