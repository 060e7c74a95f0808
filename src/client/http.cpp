#include "client/http.hpp"

#include <algorithm>

namespace kvasir::client {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_names(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

const std::string* ResponseHead::find(std::string_view name) const {
  for (const Header& header : headers) {
    if (equal_names(header.name, name)) return &header.value;
  }
  return nullptr;
}

std::string_view name_of(Failure failure) {
  switch (failure) {
    case Failure::none:
      return "none";
    case Failure::connect:
      return "connect";
    case Failure::timeout:
      return "timeout";
    case Failure::closed:
      return "closed";
    case Failure::protocol:
      return "protocol";
    case Failure::too_large:
      return "too_large";
    case Failure::cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace kvasir::client
