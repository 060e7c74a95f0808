// Tells, in a rendered prompt, content from template: private marker characters put into the messages before rendering
// and taken out again afterwards. Pure functions, any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace kvasir::text {

// A private-use character, as UTF-8, that occurs in none of the texts.
std::optional<std::string> unused_marker(std::span<const std::string_view> texts);

// A marker after every character that is not white space: trimming and joining lines leave markers where they belong.
std::string mark_all(std::string_view content, std::string_view marker);

// A marker after one character of each place that is, or could become together with text around the content, one of
// `guarded` (texts of control tokens). All else stays as it is, so that a template may inspect it.
std::string mark_hazards(std::string_view content, std::span<const std::string_view> guarded, std::string_view marker);

struct Unmarked {
  std::string text;
  std::vector<TextRange> literal;  // the characters that had a marker behind them; neighbours joined
};
Unmarked unmark(std::string_view rendered, std::string_view marker);

}  // namespace kvasir::text
