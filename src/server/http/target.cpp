#include "server/http/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kvasir::server {
namespace {

constexpr std::size_t kQueryValuesMax = 64;

Error bad(std::string_view why) { return {ErrorCode::bad_input, fmt::format("the request target {}", why)}; }

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) return bad("has a '%' that two hex digits do not follow");
    const unsigned byte = *high * 16 + *low;
    if (byte == 0) return bad("has an escaped NUL");
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

Status parse_query(std::string_view text, Target& into) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    if (into.query.size() == kQueryValuesMax) return bad(fmt::format("has more than {} query values", kQueryValuesMax));
    const std::size_t equals = item.find('=');
    KV_ASSIGN(std::string name, percent_decode(item.substr(0, equals), true));
    const std::string_view raw = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    KV_ASSIGN(std::string value, percent_decode(raw, true));
    into.query.emplace_back(std::move(name), std::move(value));
  }
  return ok_status();
}

// What follows scheme and authority in "http://host:port/path"; none if it is not of that form.
std::optional<std::string_view> strip_authority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t path = target.find_first_of("/?");
    return path == std::string_view::npos ? std::string_view() : target.substr(path);
  }
  return std::nullopt;
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  target = target.substr(0, target.find('#'));   // clients must not send a fragment; some do
  if (!target.starts_with('/')) {
    const auto rest = strip_authority(target);
    if (!rest) return bad("must be a path that begins with '/', or an http:// URL");
    target = *rest;
  }
  const std::size_t question = target.find('?');
  Target parsed;
  KV_ASSIGN(parsed.path, percent_decode(target.substr(0, question), false));
  if (parsed.path.empty()) parsed.path.push_back('/');
  if (question != std::string_view::npos) KV_TRY(parse_query(target.substr(question + 1), parsed));
  return parsed;
}

}  // namespace kvasir::server
