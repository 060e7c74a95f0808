// chat_template_kwargs: variables that a request sets for the model's chat template ("enable_thinking": false).
//
// A template's own text is where control tokens are recognised, and a variable becomes part of it. So values are
// booleans, numbers and plain words: nothing that could spell a control token.
//
// Thread rule: pure; any thread. Errors: 400 naming the variable.
#pragma once

#include <string>

#include "server/api/api_result.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::server::api {

inline constexpr std::size_t kMaxVariableBytes = 256;  // of a name or a word

ApiStatus check_template_variables(const Json& variables, const text::Tokenizer& tokenizer);

// Jinja statements that set the variables, to stand before a template's source: they render to nothing, given a newline
// after a block is dropped (trim_blocks). REQUIRES: checked.
std::string template_prologue(const Json& variables);

}  // namespace kvasir::server::api
