// A request body from bytes to JSON, within limits that are checked while it is read, so that no body costs more than
// its own size in time or a small multiple of it in memory.
//
// Thread rule: pure; any thread.
// Invariants: no recursion; what comes back is an object, no deeper and no larger than the limits, of valid UTF-8,
// without duplicate keys (a second one is refused: which of the two a reader takes would be a guess), with finite
// numbers. Errors: 413 for the size of the body; 400 invalid_json otherwise, with the byte and the path of the field
// being read.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/api/api_result.hpp"

namespace kvasir::server::api {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{16} << 20;
  std::size_t max_depth = 32;                     // objects and lists within each other; the body is the first
  std::size_t max_values = std::size_t{1} << 21;  // all members and entries together
  std::size_t max_members = 4096;                 // of one object
};

ApiResult<Json> parse_body(std::string_view body, const JsonLimits& limits = {});

}  // namespace kvasir::server::api
