// What the HTTP layer hands to the code above it and takes back: plain values, no socket and no library type.
// Thread rule: values; no sharing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::server {

// A request's field names are in lower case. Order and repetitions are as sent.
struct HeaderField {
  std::string name;
  std::string value;
  bool operator==(const HeaderField&) const = default;
};
using HeaderFields = std::vector<HeaderField>;

// The first value of a field, or null. `name` in lower case.
const std::string* find_header(const HeaderFields& fields, std::string_view name);

struct HttpRequest {
  std::string method;   // as sent; methods are case-sensitive
  std::string target;   // as sent
  std::string path;     // percent-decoded, without the query; begins with '/' ("*" for OPTIONS *)
  std::vector<std::pair<std::string, std::string>> query;   // percent-decoded, in order
  HeaderFields headers;
  std::string body;
  std::string peer;            // "127.0.0.1:50412", "[::1]:50412" or "unix"
  bool unix_socket = false;    // came over the Unix socket, which file permissions guard
  std::string id;              // x-request-id: the client's where it is well formed, else made here
  std::uint64_t arrived_ns = 0;   // platform::monotonic_ns() when its last byte was read

  // Decided by the Router, never by the client.
  std::string tenant;     // of the API key; "default" where no keys are configured
  bool admin = false;
  std::vector<std::pair<std::string, std::string>> path_parameters;   // name in the pattern -> value

  // Value of a query or path parameter, or null.
  const std::string* query_value(std::string_view name) const;
  const std::string* path_value(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  HeaderFields headers;   // Content-Type, Content-Length, Date, Connection and x-request-id are set by the server
  std::string content_type = "application/json";
  std::string body;
};

// An error that the HTTP layer itself finds; error_object.hpp has its form.
struct HttpError {
  std::string message;   // shown to people as it is
  std::string type = "invalid_request_error";
  std::optional<std::string> param;
  std::optional<std::string> code;
};

std::string error_body(const HttpError& error);
HttpResponse error_response(int status, const HttpError& error, HeaderFields headers = {});

}  // namespace kvasir::server
