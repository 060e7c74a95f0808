// What a client is told when a request is refused or fails: one `error` object in OpenAI's form, the HTTP status, and
// the headers that steer a client's retries.
//
// Thread rule: values; any thread.
// Invariants: `message` names the field, its value and what would be valid, wherever a field is to blame. `code` is a
// word, never a number. Retry-After is 1 to 120 s: openai-python gives up on anything longer.
// Source: the OpenAI API description; openai-python's and openai-node's retry rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "report/json.hpp"

namespace kvasir::server::api {

using report::Json;

inline constexpr std::uint32_t kMaxRetryAfterS = 120;

struct ApiError {
  int status = 500;                            // HTTP
  std::string type = "server_error";           // the family: "invalid_request_error", "rate_limit_error" ...
  std::string code;                            // what exactly: "context_length_exceeded" ...
  std::string param;                           // the field to blame, as a path: "messages[2].content"; "" = none
  std::string message;                         // for people
  std::optional<std::uint32_t> retry_after_s;  // what is sent is held within 1 .. kMaxRetryAfterS
  std::optional<bool> should_retry;            // overrides the client's own rule for the status

  // {"error": {message, type, param, code}}; param and code are null where there is none.
  Json json() const;
  // Retry-After and x-should-retry, those that apply.
  std::vector<std::pair<std::string, std::string>> headers() const;
};

// A request that is wrong in itself: 400, type invalid_request_error.
ApiError bad_request(std::string_view code, std::string_view param, std::string message);
// "temperature is 3; valid: 0 to 2", code invalid_value.
ApiError invalid_value(std::string_view param, std::string_view value, std::string_view valid);
// "temperature is text, "hot"; valid: a number ...", code invalid_type.
ApiError invalid_type(std::string_view param, const Json& value, std::string_view valid);
ApiError missing_field(std::string_view param, std::string_view valid);
// 404. `served`: the names that would be valid.
ApiError model_not_found(std::string_view model, const std::vector<std::string>& served);
// 400 with x-should-retry: false: prompt + output tokens are more than the context's limit.
struct ContextNeed {
  std::uint64_t prompt = 0, output = 0, limit = 0;  // tokens
  bool at_least = false;                            // the prompt was not tokenized; it has that many or more
};
ApiError context_length_exceeded(std::string_view param, const ContextNeed& need);
// 413.
ApiError body_too_large(std::uint64_t bytes, std::uint64_t limit);
// 503 server_is_overloaded: the server is full. 429 slow_down: one key's limit is reached.
ApiError overloaded(std::string message, std::uint32_t retry_after_s);
ApiError slow_down(std::string message, std::uint32_t retry_after_s);
// An error of the layers below. `param`: the field to blame if it is the request's fault.
ApiError from_error(const Error& error, std::string_view param);

// A value as it is quoted in a message: its JSON, shortened; long lists and objects by their size.
std::string quoted(const Json& value);
// The JSON type in words: "text", "a whole number", "a list" ...
std::string_view type_words(const Json& value);

}  // namespace kvasir::server::api
