#include "server/http/response_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <iterator>

#include "platform/wall_clock.hpp"

namespace kvasir::server {
namespace {

bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return fold(x) == fold(y);
  });
}

bool set_by_server(std::string_view name) {
  return equal_ignoring_case(name, "content-length") || equal_ignoring_case(name, "transfer-encoding") ||
         equal_ignoring_case(name, "connection");
}

void append_field(std::string& out, const HeaderField& field) {
  if (!is_token(field.name) || set_by_server(field.name)) return;
  out += field.name;
  out += ": ";
  const std::size_t begin = out.size();
  out += field.value;
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                  [](char c) { return (c >= 0 && c < 32) || c == 127; }, ' ');
  out += "\r\n";
}

std::string_view reason(int status) {
  const auto text = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {text.data(), text.size()};
}

}  // namespace

bool bodiless(int status) { return status < 200 || status == 204 || status == 304; }

void append_head(std::string& out, const ResponseHead& head, const HeaderFields& sticky, const HeaderFields& fields) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status, reason(head.status),
                 platform::http_date(platform::unix_ms()));
  if (!head.content_type.empty()) append_field(out, {"Content-Type", std::string(head.content_type)});
  if (head.framing == BodyFraming::length) fmt::format_to(to, "Content-Length: {}\r\n", head.length);
  if (head.framing == BodyFraming::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (!head.keep_alive) {
    out += "Connection: close\r\n";
  } else if (!head.http11) {
    out += "Connection: keep-alive\r\n";
  }
  if (!head.request_id.empty()) append_field(out, {"x-request-id", std::string(head.request_id)});
  for (const HeaderField& field : sticky) append_field(out, field);
  for (const HeaderField& field : fields) append_field(out, field);
  out += "\r\n";
}

}  // namespace kvasir::server
