#include "cli/model_argument.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace kvasir::cli {

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
      else word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return Error{ErrorCode::usage, fmt::format("unclosed {} in the argument '{}'", quote, text)};
  if (in_word) words.push_back(std::move(word));
  return words;
}

bool has_options(const std::string& model_argument) {
  std::error_code ignored;
  return model_argument.find(" -") != std::string::npos && !std::filesystem::exists(model_argument, ignored);
}

}  // namespace kvasir::cli
