// "models/x.gguf --kv-cache-dtype int8" in one argument means the same as the options on the command line.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kvasir::cli {

// The words of an argument, split at spaces; '...' and "..." keep spaces.
// Errors: usage for a quote that is not closed.
Result<std::vector<std::string>> split_words(std::string_view text);

// Whether an argument holds a path followed by options, rather than a path alone (a file of that very name wins).
bool has_options(const std::string& model_argument);

}  // namespace kvasir::cli
