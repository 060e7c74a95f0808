// Checks a body against the field table: after it, every known member has the type and lies in the range of its row, so
// that readers need not look again. Rules between fields are the readers' (request.hpp).
//
// Thread rule: pure; any thread.
// Invariants: null means absent, everywhere. A whole number may be written 5.0, as Python's and JavaScript's writers
// do. Errors: 400 naming the member's path, its value and what would be valid; the first one found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_result.hpp"
#include "server/api/field_table.hpp"

namespace kvasir::server::api {

struct CheckOptions {
  Route route = Route::chat;
  std::size_t vocabulary = 0;  // token ids are below it
  bool strict = false;         // unknown fields, and those that would change the answer elsewhere, are refused
};

// What was accepted and does nothing although its sender may think otherwise: names, without duplicates, at most
// kMaxWarnings; a name that is not a plain word is given as "(unnamed)".
using Warnings = std::vector<std::string>;
inline constexpr std::size_t kMaxWarnings = 16;
inline constexpr std::size_t kMaxWarningBytes = 64;

ApiResult<Warnings> check_fields(const Json& body, const CheckOptions& options);

// The member, or null if it is absent or null. REQUIRES: an object.
const Json* member(const Json& object, std::string_view name);

// Members of a checked body; `standard` where absent.
bool flag_of(const Json& object, std::string_view name, bool standard);
float number_of(const Json& object, std::string_view name, float standard);
std::string text_of(const Json& object, std::string_view name);
std::int64_t integer_of(const Json& value);

}  // namespace kvasir::server::api
