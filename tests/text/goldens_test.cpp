// Every id equals llama.cpp's: our small vocabularies, one for each pre-tokenizer and both SentencePiece flavours, and
// the model files that are there. tests/data/text/SOURCE.md says how the expected ids were made.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/text/vocabularies.hpp"

namespace kvasir::text {
namespace {

using nlohmann::json;

std::vector<json> read_lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

class Fnv {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  std::string hex() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

std::string hash_of_pieces(const Tokenizer& tokenizer) {
  Fnv hash;
  for (TokenId id = 0; tokenizer.contains(id); ++id) {
    const char size = static_cast<char>(tokenizer.piece(id).size() & 0xFF);
    hash.add({&size, 1});
    hash.add(tokenizer.piece(id));
  }
  return hash.hex();
}

std::string hash_of_control(const Tokenizer& tokenizer) {
  Fnv hash;
  for (TokenId id = 0; tokenizer.contains(id); ++id) hash.add(tokenizer.is_control(id) ? "1" : "0");
  return hash.hex();
}

void expect_vocabulary(const Tokenizer& tokenizer, const json& expected) {
  EXPECT_EQ(tokenizer.vocab_size(), expected["size"].get<std::size_t>());
  EXPECT_EQ(tokenizer.bos().value_or(-1), expected["bos"].get<TokenId>());
  EXPECT_EQ(tokenizer.eos().value_or(-1), expected["eos"].get<TokenId>());
  EXPECT_EQ(tokenizer.adds_bos(), expected["add_bos"].get<bool>());
  const auto eog = tokenizer.eog_ids();
  EXPECT_EQ(std::vector<TokenId>(eog.begin(), eog.end()), expected["eog"].get<std::vector<TokenId>>());
  EXPECT_EQ(hash_of_control(tokenizer), expected["control"].get<std::string>());
  EXPECT_EQ(hash_of_pieces(tokenizer), expected["pieces"].get<std::string>());
}

struct Golden {
  std::string name;        // ids-NAME.jsonl
  std::string path;        // the vocabulary's file
  bool byte_level = true;  // then decoding gives the text back
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class Goldens : public testing::TestWithParam<Golden> {};

TEST_P(Goldens, EqualLlamaCpp) {
  if (GetParam().path.empty()) GTEST_SKIP() << "no model file for " << GetParam().name << " in models/";
  const Tokenizer tokenizer = load_tokenizer(GetParam().path);
  const std::vector<json> texts = read_lines(data_path("texts.jsonl"));
  const std::vector<json> expected = read_lines(data_path("ids-" + GetParam().name + ".jsonl"));
  ASSERT_EQ(expected.size(), texts.size() + 1);
  ASSERT_GE(texts.size(), 150u);
  expect_vocabulary(tokenizer, expected[0]);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i].get<std::string>();
    for (const bool parse_special : {false, true}) {
      const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
      ASSERT_TRUE(ids.ok()) << texts[i] << ": " << ids.error().message;
      EXPECT_EQ(*ids, expected[i + 1][parse_special ? 1 : 0].get<std::vector<TokenId>>())
          << "parse_special " << parse_special << " " << texts[i];
      if (GetParam().byte_level && tokenizer.missing_bytes().empty()) {
        EXPECT_EQ(tokenizer.decode(*ids, false).value(), text) << texts[i];
      }
    }
  }
}

std::vector<Golden> goldens() {
  std::vector<Golden> all;
  for (const char* name :
       {"vocab-default", "vocab-gpt-2", "vocab-smollm", "vocab-qwen2", "vocab-llama-bpe", "vocab-deepseek-llm"}) {
    all.push_back({name, data_path(std::string(name) + ".gguf")});
  }
  all.push_back({"vocab-spm", data_path("vocab-spm.gguf"), false});
  all.push_back({"vocab-spm-no-prefix", data_path("vocab-spm-no-prefix.gguf"), false});
  all.push_back({"smollm2", model_path("SmolLM2-135M-Instruct-Q4_1.gguf")});
  all.push_back({"qwen2.5-coder", model_path("Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf")});
  all.push_back({"gemma-3", model_path("gemma-3-270m-Q4_K_M.gguf"), false});
  all.push_back({"llama-spm", model_path("ggml-vocab-llama-spm.gguf"), false});
  for (const char* name : {"llama-bpe", "gpt-2", "deepseek-llm"}) {
    all.push_back({name, model_path(fmt::format("ggml-vocab-{}.gguf", name))});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Goldens, testing::ValuesIn(goldens()), [](const auto& golden) {
  std::string name = golden.param.name;
  for (char& c : name) c = (std::isalnum(static_cast<unsigned char>(c)) != 0) ? c : '_';
  return name;
});

}  // namespace
}  // namespace kvasir::text
