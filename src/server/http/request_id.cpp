#include "server/http/request_id.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace kvasir::server {

bool valid_request_id(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdMax && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:/+=@-").find(c) != std::string_view::npos;
  });
}

std::string make_request_id() {
  std::array<unsigned char, 16> bytes;
  KV_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system's random source works");
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string id = "req_";
  id.reserve(4 + 2 * bytes.size());
  for (const unsigned char byte : bytes) {
    id += kHex[byte >> 4];
    id += kHex[byte & 15];
  }
  return id;
}

}  // namespace kvasir::server
