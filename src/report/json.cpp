#include "report/json.hpp"

namespace kvasir::report {

std::string to_json_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace kvasir::report
