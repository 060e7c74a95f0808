#include "server/app/replies.hpp"

#include "report/json.hpp"

namespace kvasir::server {

void reply(Responder& responder, const api::ApiError& error) {
  HeaderFields headers;
  for (auto& [name, value] : error.headers()) headers.push_back({name, value});
  responder.send(error.status, headers, "application/json", report::to_json_line(error.json()));
}

void reply(Responder& responder, const api::Json& json, int status) {
  responder.send(status, {}, "application/json", report::to_json_line(json));
}

api::ApiError api_error(const Refusal& refusal, std::uint32_t retry_after_s, std::string_view prompt_field) {
  switch (refusal.reason) {
    case RefusalReason::queue_full_requests:
    case RefusalReason::queue_full_tokens:
    case RefusalReason::draining:
    case RefusalReason::not_ready:
    case RefusalReason::loop_failed:
      return api::overloaded(refusal.error.message, retry_after_s);
    case RefusalReason::never_fits: {
      api::ApiError error = api::bad_request("request_does_not_fit", prompt_field, refusal.error.message);
      error.should_retry = false;
      return error;
    }
    case RefusalReason::bad_request:
      break;
  }
  return api::from_error(refusal.error, "");
}

}  // namespace kvasir::server
