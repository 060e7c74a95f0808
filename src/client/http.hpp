// Requests and responses as plain values, and the kinds of failure of an exchange.
// Thread rule: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::client {

struct Header {
  std::string name, value;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";          // after the address's base
  std::vector<Header> headers = {};  // Host, Content-Length and User-Agent are added
  std::string body = {};
};

struct ResponseHead {
  unsigned status = 0;
  std::vector<Header> headers;
  // The first header of that name, whatever its case; nullptr if there is none.
  const std::string* find(std::string_view name) const;
};

struct HttpResponse {
  ResponseHead head;
  std::string body;
};

enum class Failure {
  none,
  connect,    // no connection: refused, unreachable, no such socket, no descriptors left
  timeout,    // a limit of ClientOptions passed
  closed,     // the connection ended before the response did
  protocol,   // what came is not HTTP/1.1
  too_large,  // more than a limit of ClientOptions
  cancelled,  // by us
};

// "connect", "timeout", ...
std::string_view name_of(Failure failure);

}  // namespace kvasir::client
