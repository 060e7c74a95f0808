// Where a server is: http://HOST[:PORT][/BASE] or unix:PATH.
// Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::client {

struct Address {
  std::string host;  // a name or an IP address, IPv6 without brackets; empty with a Unix socket
  std::uint16_t port = 80;
  std::string unix_path;  // of the socket; empty with TCP
  std::string base;       // before every target: "" or "/prefix" without a slash at the end

  std::string authority() const;  // for the Host header
  std::string text() const;       // for people: "127.0.0.1:8000", "unix:/run/kvasir.sock"
};

// Errors: usage, with the text and the valid forms; unsupported for https.
Result<Address> parse_address(std::string_view text);

}  // namespace kvasir::client
