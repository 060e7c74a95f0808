// Request targets: "/v1/models?limit=2", or the absolute form that proxies send, to a decoded path and query.
// Pure function, any thread. Source: RFC 9112 section 3.2, RFC 3986 section 2.1.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace kvasir::server {

struct Target {
  std::string path;   // percent-decoded, begins with '/'
  std::vector<std::pair<std::string, std::string>> query;   // decoded, '+' is a space; a name alone has an empty value
};

// Errors: bad_input: neither form, an escape that is not two hex digits, an escaped NUL, more than 64 query values.
Result<Target> parse_target(std::string_view target);

}  // namespace kvasir::server
