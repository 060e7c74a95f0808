// The bytes before an answer's body: status line and fields.
// Pure but for the date; any thread. Source: RFC 9112 section 4.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.hpp"

namespace kvasir::server {

enum class BodyFraming { none, length, chunked, until_close };

struct ResponseHead {
  int status = 200;
  std::string_view content_type;   // empty: no such field
  std::string_view request_id;
  BodyFraming framing = BodyFraming::none;
  std::size_t length = 0;          // for BodyFraming::length
  bool keep_alive = true;
  bool http11 = true;
};

// Appends the head to `out`. Fields whose name is not a token, or that only the server may set (Content-Length,
// Transfer-Encoding, Connection), are left out; control characters in values become spaces.
void append_head(std::string& out, const ResponseHead& head, const HeaderFields& sticky, const HeaderFields& fields);

// Whether answers of this status never have a body.
bool bodiless(int status);

}  // namespace kvasir::server
