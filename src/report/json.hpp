// JSON for results: keys in the order they were added, one object a line, always valid UTF-8.
// Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kvasir::report {

using Json = nlohmann::ordered_json;

// The value on one line, without a newline. Bytes that are not UTF-8 (text of a model may hold some) become U+FFFD;
// numbers that are not finite become null.
std::string to_json_line(const Json& value);

}  // namespace kvasir::report
