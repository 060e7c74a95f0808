#include "server/http/message.hpp"

#include "report/json.hpp"
#include "server/error_object.hpp"

namespace kvasir::server {
namespace {

const std::string* find_value(const std::vector<std::pair<std::string, std::string>>& pairs, std::string_view name) {
  for (const auto& [key, value] : pairs) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

const std::string* find_header(const HeaderFields& fields, std::string_view name) {
  for (const HeaderField& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

const std::string* HttpRequest::query_value(std::string_view name) const { return find_value(query, name); }
const std::string* HttpRequest::path_value(std::string_view name) const { return find_value(path_parameters, name); }

std::string error_body(const HttpError& error) {
  return report::to_json_line(error_object(error.message, error.type, error.param.value_or(""), error.code.value_or("")));
}

HttpResponse error_response(int status, const HttpError& error, HeaderFields headers) {
  return {.status = status, .headers = std::move(headers), .content_type = "application/json", .body = error_body(error)};
}

}  // namespace kvasir::server
