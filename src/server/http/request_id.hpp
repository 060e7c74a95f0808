// Request ids: the client's own where it can be echoed and logged safely, else a fresh one.
// Pure but for the random source; any thread.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::server {

inline constexpr std::size_t kRequestIdMax = 128;

// 1 to 128 characters of [A-Za-z0-9._:/+=@-]: no space, quote, control or escape that a log or a header could trip over.
bool valid_request_id(std::string_view id);

// "req_" and 32 random hex digits.
std::string make_request_id();

}  // namespace kvasir::server
