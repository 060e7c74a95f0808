#include "client/address.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kvasir::client {
namespace {

constexpr std::string_view kForms = "http://HOST:PORT, http://HOST:PORT/BASE, unix:/PATH/TO.sock";
constexpr std::size_t kUnixPathMax = 107;  // sun_path less its end

Error bad(std::string_view text, std::string_view why) {
  return {ErrorCode::usage, fmt::format("'{}' {}; valid: {}", text, why, kForms)};
}

bool is_port(std::string_view text, std::uint16_t& port) {
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), port);
  return status == std::errc{} && rest == text.data() + text.size() && port > 0;
}

bool is_plain(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c == '\x7f' || c == '"' || c == '<' || c == '>' || c == '\\') return false;
  }
  return true;
}

Result<Address> parse_unix(std::string_view text) {
  Address address;
  address.unix_path = text.substr(std::string_view("unix:").size());
  if (address.unix_path.starts_with("//")) address.unix_path.erase(0, 2);  // unix:///run/x.sock
  if (address.unix_path.empty()) return bad(text, "has no path");
  if (address.unix_path.size() > kUnixPathMax)
    return bad(text, fmt::format("has a path of {} bytes, at most {} fit", address.unix_path.size(), kUnixPathMax));
  return address;
}

Status parse_host(std::string_view text, std::string_view authority, Address& address) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad(text, "has an IPv6 address without ']'");
    address.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (!port.empty() && !port.starts_with(':')) return bad(text, "has something other than a port after ']'");
  } else {
    const std::size_t colon = authority.find(':');
    address.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  if (address.host.empty()) return bad(text, "has no host");
  if (!port.empty() && !is_port(port.substr(1), address.port))
    return bad(text, fmt::format("has the port '{}', not a number from 1 to 65535", port.substr(1)));
  return ok_status();
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  if (text.starts_with("unix:")) return parse_unix(text);
  if (text.starts_with("https://")) {
    return Error{ErrorCode::unsupported,
                 fmt::format("'{}': https is not offered; put a proxy in front, or use {}", text, kForms)};
  }
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return bad(text, "is no address of a server");
  if (!is_plain(text)) return bad(text, "holds a character that no URL may hold");
  std::string_view rest = text.substr(kScheme.size());
  if (rest.find_first_of("?#@") != std::string_view::npos) return bad(text, "holds a query, a fragment or a user name");
  Address address;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  KV_TRY(parse_host(text, rest.substr(0, slash), address));
  address.base = rest.substr(slash);
  while (address.base.ends_with('/')) address.base.pop_back();
  return address;
}

std::string Address::authority() const {
  if (!unix_path.empty()) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

std::string Address::text() const { return unix_path.empty() ? authority() : "unix:" + unix_path; }

}  // namespace kvasir::client
