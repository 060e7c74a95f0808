// Vocabularies for the tests of this folder: small ones made here, and files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "artifact/gguf.hpp"
#include "tests/support/gguf_writer.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace kvasir::text {

inline std::string data_path(const std::string& name) {
  return std::string(KVASIR_SOURCE_DIR) + "/tests/data/text/" + name;
}

// models/NAME of the checkout; empty if it is not there.
inline std::string model_path(const std::string& name) {
  const std::string path = std::string(KVASIR_SOURCE_DIR) + "/models/" + name;
  return std::filesystem::exists(path) ? path : std::string();
}

inline Tokenizer load_tokenizer(const std::string& path) {
  auto file = artifact::GgufFile::open(path);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  auto tokenizer = Tokenizer::from_gguf(*file);
  EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
  return std::move(tokenizer).value();
}

// A writer for a byte-level vocabulary without merges: 256 byte tokens, then `extra` of the given GGUF types.
struct Extra {
  std::string text;
  std::int32_t type;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused
};
inline test::GgufWriter byte_vocabulary(const std::vector<Extra>& extra, const std::string& pre = "gpt-2") {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(256, 1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.emplace_back();
    append_utf8(tokens.back(), char_of_byte(static_cast<std::uint8_t>(byte)));
  }
  for (const Extra& token : extra) {
    tokens.push_back(token.text);
    types.push_back(token.type);
  }
  test::GgufWriter writer;
  writer.value("tokenizer.ggml.model", std::string_view("gpt2"));
  writer.value("tokenizer.ggml.pre", std::string_view(pre));
  writer.array("tokenizer.ggml.tokens", std::vector<std::string_view>(tokens.begin(), tokens.end()));
  writer.array("tokenizer.ggml.token_type", types);
  writer.array("tokenizer.ggml.merges", std::vector<std::string_view>{});
  return writer;
}

// Ids of byte_vocabulary() for a text without extra tokens.
inline std::vector<TokenId> bytes_as_ids(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

inline Result<Tokenizer> tokenizer_of(const test::GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.bytes();
  auto file = artifact::GgufFile::parse(bytes, "test.gguf");
  if (!file) return file.error();
  return Tokenizer::from_gguf(*file);
}

}  // namespace kvasir::text
