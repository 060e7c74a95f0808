#include "server/http/message.hpp"

#include "report/json.hpp"

namespace kvasir::server {
namespace {

const std::string* find_value(const std::vector<std::pair<std::string, std::string>>& pairs, std::string_view name) {
  for (const auto& [key, value] : pairs) {
    if (key == name) return &value;
  }
  return nullptr;
}

report::Json or_null(const std::optional<std::string>& text) { return text ? report::Json(*text) : report::Json(nullptr); }

}  // namespace

const std::string* find_header(const HeaderFields& fields, std::string_view name) {
  for (const HeaderField& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

const std::string* HttpRequest::query_value(std::string_view name) const { return find_value(query, name); }
const std::string* HttpRequest::path_value(std::string_view name) const { return find_value(path_parameters, name); }

std::string error_body(const ApiError& error) {
  return report::to_json_line({{"error",
                                {{"message", error.message},
                                 {"type", error.type},
                                 {"param", or_null(error.param)},
                                 {"code", or_null(error.code)}}}});
}

HttpResponse error_response(int status, const ApiError& error, HeaderFields headers) {
  return {.status = status, .headers = std::move(headers), .content_type = "application/json", .body = error_body(error)};
}

}  // namespace kvasir::server
