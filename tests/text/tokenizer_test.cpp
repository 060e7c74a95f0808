#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/text/vocabularies.hpp"

namespace kvasir::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kSpecial{.add_special = false, .parse_special = true};

TEST(Tokenizer, ControlTextIsTextUnlessAsked) {
  const auto tokenizer = tokenizer_of(byte_vocabulary({{"<|im_end|>", 3}, {"<tool>", 4}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->encode("<|im_end|>", kPlain).value(), bytes_as_ids("<|im_end|>"));
  EXPECT_THAT(tokenizer->encode("a<|im_end|>b", kSpecial).value(), ElementsAre('a', 256, 'b'));
  // User-defined tokens are vocabulary, not commands.
  EXPECT_THAT(tokenizer->encode("a<tool>", kPlain).value(), ElementsAre('a', 257));
}

TEST(Tokenizer, LongerTokensGoFirstOverTheWholeText) {
  const auto tokenizer = tokenizer_of(byte_vocabulary({{"ab", 4}, {"bcd", 4}, {"\n", 4}, {"\n\n", 4}, {"\n\n\n", 4}}));
  EXPECT_THAT(tokenizer->encode("abcd", kPlain).value(), ElementsAre('a', 257));
  EXPECT_THAT(tokenizer->encode("\n\n\n\n\n", kPlain).value(), ElementsAre(260, 259));
}

TEST(Tokenizer, BadUtf8NamesTheByte) {
  const auto tokenizer = tokenizer_of(byte_vocabulary({}));
  for (const auto& [text, where] : {std::pair{"ab\xFFz", "byte 2 (0xFF)"},
                                    {"\xC3", "byte 0 (0xC3)"},
                                    {"a\xED\xA0\x80", "byte 1 (0xED)"},
                                    {"\xC0\x80", "byte 0 (0xC0)"},
                                    {"\xF4\x90\x80\x80", "byte 0 (0xF4)"}}) {
    const auto ids = tokenizer->encode(text);
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().code, ErrorCode::bad_input);
    EXPECT_THAT(ids.error().message, HasSubstr(where));
  }
}

TEST(Tokenizer, ExactlyOneBos) {
  auto writer = byte_vocabulary({{"<bos>", 3}});
  writer.value<std::uint32_t>("tokenizer.ggml.bos_token_id", 256).value("tokenizer.ggml.add_bos_token", true);
  const auto tokenizer = tokenizer_of(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("a").value(), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer->encode("<bos>a", {.parse_special = true}).value(), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer->encode("<bos><bos>a<bos>", {.parse_special = true}).value(), ElementsAre(256, 'a', 256));
  EXPECT_THAT(tokenizer->encode("<bos>a", kSpecial).value(), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer->encode("a", kPlain).value(), ElementsAre('a'));
  EXPECT_THAT(tokenizer->encode("").value(), ElementsAre(256));
  EXPECT_TRUE(tokenizer->encode("", kPlain).value().empty());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a").value()).value(), "a");
}

TEST(Tokenizer, EosBehindWhereTheFileAsks) {
  auto writer = byte_vocabulary({{"<eos>", 3}});
  writer.value<std::uint32_t>("tokenizer.ggml.eos_token_id", 256).value("tokenizer.ggml.add_eos_token", true);
  const auto tokenizer = tokenizer_of(writer);
  EXPECT_THAT(tokenizer->encode("a").value(), ElementsAre('a', 256));
  EXPECT_TRUE(tokenizer->is_eog(256));
}

TEST(Tokenizer, GuardedRangesHoldNoControlTokens) {
  const auto tokenizer = tokenizer_of(byte_vocabulary({{"<e>", 3}, {"<t>", 4}}));
  const std::string text = "<e><e><t>";
  const std::vector<TokenId> structural = {257};
  const auto ids = [&](std::vector<TextRange> literal) {
    return tokenizer->encode_guarded(text, literal, structural, false).value();
  };
  EXPECT_THAT(ids({}), ElementsAre(256, 256, 257));
  EXPECT_THAT(ids({{1, 2}}), ElementsAre('<', 'e', '>', 256, 257));
  EXPECT_THAT(ids({{3, 4}}), ElementsAre(256, '<', 'e', '>', 257));
  EXPECT_THAT(ids({{0, 1}, {5, 9}}), ElementsAre('<', 'e', '>', '<', 'e', '>', '<', 't', '>'));
}

TEST(Tokenizer, EndsOfGenerationByKeyAndByName) {
  auto writer = byte_vocabulary({{"<|im_end|>", 1}, {"stop", 1}, {"eot", 3}, {"</s>", 4}});
  writer.value<std::uint32_t>("tokenizer.ggml.eos_token_id", 257)
      .value<std::uint32_t>("tokenizer.ggml.eot_token_id", 258);
  const auto tokenizer = tokenizer_of(writer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto eog = tokenizer->eog_ids();
  EXPECT_THAT(std::vector<TokenId>(eog.begin(), eog.end()), ElementsAre(256, 257, 258, 259));
  EXPECT_TRUE(tokenizer->is_control(256));
  EXPECT_EQ(tokenizer->kind(257), TokenKind::normal);
  EXPECT_FALSE(tokenizer->is_eog('a'));
}

TEST(Tokenizer, DecodeRefusesForeignIds) {
  const auto tokenizer = tokenizer_of(byte_vocabulary({{"<e>", 3}, {"[X]", 5}}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 256, 257, 'b'}).value(), "ab");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'a', 256, 257, 'b'}, false).value(), "a<e>b");
  for (const TokenId id : {-1, 258}) {
    const auto text = tokenizer->decode(std::vector<TokenId>{id});
    ASSERT_FALSE(text.ok());
    EXPECT_THAT(text.error().message, HasSubstr("valid: 0 to 257"));
  }
}

TEST(Tokenizer, RefusalsNameKeyValueAndWhatIsValid) {
  const auto refusal = [](const test::GgufWriter& writer) {
    const auto tokenizer = tokenizer_of(writer);
    return tokenizer.ok() ? std::string("accepted") : tokenizer.error().message;
  };
  test::GgufWriter unigram;
  unigram.value("tokenizer.ggml.model", std::string_view("t5"));
  EXPECT_THAT(refusal(unigram), HasSubstr("tokenizer.ggml.model is \"t5\"; offered are \"gpt2\""));
  EXPECT_THAT(
      refusal(byte_vocabulary({}, "falcon")),
      HasSubstr(
          "tokenizer.ggml.pre is \"falcon\"; offered are default, deepseek-llm, gpt-2, llama-bpe, qwen2, smollm"));
  EXPECT_THAT(refusal(byte_vocabulary({{"a", 1}})), HasSubstr("tokens[97] and [256] are both \"a\""));
  EXPECT_THAT(refusal(byte_vocabulary({{"x!", 9}})), HasSubstr("token_type[256] is 9; valid: 0 to 6"));
  EXPECT_THAT(refusal(byte_vocabulary({{"x!", 6}})), HasSubstr("valid: <0x00> to <0xFF>"));
  auto eos = byte_vocabulary({});
  eos.value<std::uint32_t>("tokenizer.ggml.eos_token_id", 256);
  EXPECT_THAT(refusal(eos), HasSubstr("tokenizer.ggml.eos_token_id is 256; valid: below 256"));
  auto bos = byte_vocabulary({});
  bos.value("tokenizer.ggml.add_bos_token", true);
  EXPECT_THAT(refusal(bos), HasSubstr("no tokenizer.ggml.bos_token_id"));
}

test::GgufWriter scored(const std::vector<std::pair<std::string, float>>& pieces, bool bytes) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {2, 3, 3};
  std::vector<float> scores = {0, 0, 0};
  for (int byte = 0; bytes && byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
    scores.push_back(0);
  }
  for (const auto& [text, score] : pieces) {
    tokens.push_back(text);
    types.push_back(1);
    scores.push_back(score);
  }
  test::GgufWriter writer;
  writer.value("tokenizer.ggml.model", std::string_view("llama"));
  writer.array("tokenizer.ggml.tokens", std::vector<std::string_view>(tokens.begin(), tokens.end()));
  writer.array("tokenizer.ggml.token_type", types);
  writer.array("tokenizer.ggml.scores", scores);
  writer.value<std::uint32_t>("tokenizer.ggml.bos_token_id", 1)
      .value<std::uint32_t>("tokenizer.ggml.unknown_token_id", 0);
  return writer;
}

TEST(ScoreVocabulary, TwoSpellingsOfOneTokenCompareEqual) {
  // "aaaa": every "aa" scores alike, so pairs go from the left, and "aaa" by either of its spellings.
  const auto tokenizer = tokenizer_of(scored({{"a", -9}, {"aa", -1}, {"aaa", 0}, {"\xE2\x96\x81", -9}}, true));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const TokenId a = 259, aa = 260, aaa = 261, space = 262;
  EXPECT_THAT(tokenizer->encode("aaaa").value(), ElementsAre(1, space, aaa, a));
  EXPECT_THAT(tokenizer->encode("aaaaa").value(), ElementsAre(1, space, aaa, aa));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" aa a").value()).value(), " aa a");
}

TEST(ScoreVocabulary, UnknownCharactersBecomeBytesOrUnknown) {
  const auto with_bytes = tokenizer_of(scored({{"\xE2\x96\x81", -1}}, true));
  EXPECT_THAT(with_bytes->encode("é", kPlain).value(), ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
  const auto without = tokenizer_of(scored({{"\xE2\x96\x81", -1}}, false));
  EXPECT_THAT(without->encode("é", kPlain).value(), ElementsAre(3, 0, 0));
}

TEST(ScoreVocabulary, ControlTokensCannotBeSpelled) {
  const auto tokenizer =
      tokenizer_of(scored({{"<s", -1}, {"<", -2}, {"s", -2}, {">", -2}, {"\xE2\x96\x81", -1}}, true));
  EXPECT_THAT(tokenizer->encode("<s>", kPlain).value(), ElementsAre(263, 259, 262));
  EXPECT_THAT(tokenizer->encode("<s>", kSpecial).value(), ElementsAre(1));
}

TEST(Tokenizer, SeveralThreadsAtOnce) {
  const Tokenizer tokenizer = load_tokenizer(data_path("vocab-qwen2.gguf"));
  const std::string text = "Everyone has the right to life, liberty and the security of person. 人人有权享有生命";
  const auto expected = tokenizer.encode(text).value();
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (std::size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) equal[i] += tokenizer.encode(text).value() == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, testing::Each(200));
}

TEST(Tokenizer, LongRunsTakeLinearTime) {
  const Tokenizer bytes = load_tokenizer(data_path("vocab-smollm.gguf"));
  const Tokenizer scores = load_tokenizer(data_path("vocab-spm.gguf"));
  for (const std::string unit : {" ", "a", "\n", "<", "é", "1", "ab "}) {
    std::string text;
    while (text.size() < 200'000) text += unit;
    EXPECT_EQ(bytes.decode(bytes.encode(text, kSpecial).value()).value(), text);
    EXPECT_EQ(scores.decode(scores.encode(text, kSpecial).value()).value(), text);
  }
}

}  // namespace
}  // namespace kvasir::text
