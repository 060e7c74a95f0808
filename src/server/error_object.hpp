// The one form of an error that clients parse: {"error": {"message", "type", "param", "code"}}.
// Thread rule: pure; any thread.
// Source: the OpenAI API description.
#pragma once

#include <string_view>

#include "report/json.hpp"

namespace kvasir::server {

// An empty param or code is null: there is none.
inline report::Json error_object(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  const auto or_null = [](std::string_view text) { return text.empty() ? report::Json(nullptr) : report::Json(text); };
  return {{"error", {{"message", message}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}}}};
}

}  // namespace kvasir::server
