#include "server/http/access.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <utility>

namespace kvasir::server {
namespace {

constexpr std::size_t kKeyMin = 8, kKeyMax = 512, kTenantMax = 64;

Sha256Digest digest_of(std::string_view key) { return sha256(std::as_bytes(std::span(key.data(), key.size()))); }

bool same(const Sha256Digest& a, const Sha256Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

bool valid_key(std::string_view key) {
  return key.size() >= kKeyMin && key.size() <= kKeyMax &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > 32 && c < 127; });
}

bool valid_tenant(std::string_view tenant) {
  return !tenant.empty() && tenant.size() <= kTenantMax && std::all_of(tenant.begin(), tenant.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

struct Line {
  std::string key;
  Identity identity{.tenant = "default", .admin = false};
};

// One line of a key text, or what is wrong with it in words that do not repeat it.
Result<Line> parse_line(const std::vector<std::string>& words) {
  Line line;
  line.key = words.size() == 1 ? words[0] : words[1];
  if (words.size() > 1) line.identity.tenant = words[0];
  const auto bad = [](std::string why) { return Error{ErrorCode::bad_input, std::move(why)}; };
  if (words.size() > 3) return bad("has more than three words; must be 'KEY', 'TENANT KEY' or 'TENANT KEY admin'");
  if (words.size() == 3 && words[2] != "admin") return bad("the third word must be 'admin'");
  line.identity.admin = words.size() == 3;
  if (!valid_key(line.key)) {
    return bad(fmt::format("the key must have {} to {} printable ASCII characters; it has {}", kKeyMin, kKeyMax,
                           line.key.size()));
  }
  if (!valid_tenant(line.identity.tenant)) {
    return bad(fmt::format("the tenant must have 1 to {} characters of A-Z a-z 0-9 . _ -", kTenantMax));
  }
  return line;
}

}  // namespace

Status KeyRing::add(std::string_view text, const std::string& origin) {
  std::istringstream lines{std::string(text)};
  std::string content;
  for (int number = 1; std::getline(lines, content); ++number) {
    std::istringstream words_in(content);
    const std::vector<std::string> words{std::istream_iterator<std::string>(words_in), {}};
    if (words.empty() || words[0].starts_with('#')) continue;
    Result<Line> line = parse_line(words);
    if (!line) return Error{ErrorCode::bad_input, fmt::format("{}, line {}: {}", origin, number, line.error().message)};
    const Sha256Digest digest = digest_of(line->key);
    if (std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) { return same(key.digest, digest); })) {
      return Error{ErrorCode::bad_input, fmt::format("{}, line {}: the key was given before", origin, number)};
    }
    keys_.push_back({digest, std::move(line->identity)});
  }
  return ok_status();
}

Status KeyRing::add_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return Error{ErrorCode::io, fmt::format("api-key-file {}: cannot be read", path)};
  const std::size_t before = keys_.size();
  KV_TRY(add(text.str(), "api-key-file " + path));
  if (keys_.size() == before) {   // not "no key is asked for"
    return Error{ErrorCode::bad_input, fmt::format("api-key-file {}: no key is in it; one a line: KEY, TENANT KEY or TENANT KEY admin", path)};
  }
  return ok_status();
}

bool KeyRing::has_admin() const {
  return std::any_of(keys_.begin(), keys_.end(), [](const Key& key) { return key.identity.admin; });
}

std::optional<Identity> KeyRing::identify(std::string_view key) const {
  const Sha256Digest digest = digest_of(key);
  const Key* found = nullptr;
  for (const Key& candidate : keys_) {   // to the end, whichever it is
    if (same(candidate.digest, digest)) found = &candidate;
  }
  return found != nullptr ? std::optional(found->identity) : std::nullopt;
}

std::optional<std::string_view> presented_key(const HeaderFields& headers) {
  const auto count = [&](std::string_view name) {
    return std::count_if(headers.begin(), headers.end(), [&](const HeaderField& field) { return field.name == name; });
  };
  if (count("authorization") > 1 || count("x-api-key") > 1) return std::nullopt;
  if (const std::string* authorization = find_header(headers, "authorization")) {
    constexpr std::string_view kScheme = "bearer ";
    const std::string_view value = *authorization;
    if (value.size() <= kScheme.size() || !equal_ignoring_case(value.substr(0, kScheme.size()), kScheme)) {
      return std::nullopt;
    }
    return value.substr(kScheme.size());
  }
  const std::string* key = find_header(headers, "x-api-key");
  return key != nullptr ? std::optional<std::string_view>(*key) : std::nullopt;
}

}  // namespace kvasir::server
