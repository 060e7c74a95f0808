#include "server/api/template_variables.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace kvasir::server::api {
namespace {

// What the renderer itself gives a template, and Jinja's own words.
constexpr std::array<std::string_view, 28> kTaken = {"messages",
                                                     "add_generation_prompt",
                                                     "bos_token",
                                                     "eos_token",
                                                     "tools",
                                                     "documents",
                                                     "raise_exception",
                                                     "strftime_now",
                                                     "namespace",
                                                     "range",
                                                     "dict",
                                                     "loop",
                                                     "self",
                                                     "caller",
                                                     "true",
                                                     "false",
                                                     "none",
                                                     "True",
                                                     "False",
                                                     "None",
                                                     "and",
                                                     "or",
                                                     "not",
                                                     "in",
                                                     "is",
                                                     "if",
                                                     "else",
                                                     "for"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxVariableBytes && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); }) &&
         std::find(kTaken.begin(), kTaken.end(), name) == kTaken.end();
}

bool is_word(std::string_view word, const text::Tokenizer& tokenizer) {
  const auto plain = [](char c) { return is_letter(c) || is_digit(c) || c == ' ' || c == '-' || c == '.'; };
  if (word.size() > kMaxVariableBytes || !std::all_of(word.begin(), word.end(), plain)) return false;
  const auto ids = tokenizer.control_ids();
  return std::none_of(ids.begin(), ids.end(), [&](TokenId id) {
    return !tokenizer.piece(id).empty() && word.find(tokenizer.piece(id)) != std::string_view::npos;
  });
}

}  // namespace

ApiStatus check_template_variables(const Json& variables, const text::Tokenizer& tokenizer) {
  for (const auto& [name, value] : variables.items()) {
    if (!is_name(name)) {
      return bad_request("invalid_value", "chat_template_kwargs",
                         fmt::format("chat_template_kwargs sets {}; valid: names of letters, digits and '_' that the "
                                     "template is not given otherwise",
                                     quoted(Json(name))));
    }
    const bool fits = value.is_boolean() || value.is_number() || value.is_null() ||
                      (value.is_string() && is_word(value.get_ref<const std::string&>(), tokenizer));
    if (fits) continue;
    return invalid_value(
        "chat_template_kwargs." + name, quoted(value),
        fmt::format("true, false, a number, or a word of letters, digits, space, '_', '-' and '.', at most "
                    "{} bytes",
                    kMaxVariableBytes));
  }
  return api_ok();
}

std::string template_prologue(const Json& variables) {
  std::string out;
  for (const auto& [name, value] : variables.items()) {
    // JSON's numbers, booleans and plain words are Jinja's too.
    out += fmt::format("{{% set {} = {} %}}\n", name, value.is_null() ? "none" : value.dump());
  }
  return out;
}

}  // namespace kvasir::server::api
