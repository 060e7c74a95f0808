#include "server/api/api_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "server/error_object.hpp"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kQuotedBytes = 48;   // of a value in a message
constexpr std::size_t kQuotedMembers = 4;  // longer lists and objects are named by their size
constexpr std::string_view kInvalidRequest = "invalid_request_error";

// The first `bytes` of UTF-8 text, cut between characters.
std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0u) == 0x80u) --bytes;
  return std::string(text.substr(0, bytes)) + "...";
}

}  // namespace

Json ApiError::json() const { return error_object(message, type, param, code); }

std::vector<std::pair<std::string, std::string>> ApiError::headers() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (retry_after_s) out.emplace_back("Retry-After", std::to_string(std::clamp(*retry_after_s, 1u, kMaxRetryAfterS)));
  if (should_retry) out.emplace_back("x-should-retry", *should_retry ? "true" : "false");
  return out;
}

ApiError bad_request(std::string_view code, std::string_view param, std::string message) {
  return {400, std::string(kInvalidRequest), std::string(code), std::string(param), std::move(message), {}, {}};
}

ApiError invalid_value(std::string_view param, std::string_view value, std::string_view valid) {
  return bad_request("invalid_value", param, fmt::format("{} is {}; valid: {}", param, value, valid));
}

ApiError invalid_type(std::string_view param, const Json& value, std::string_view valid) {
  return bad_request("invalid_type", param,
                     fmt::format("{} is {}, {}; valid: {}", param, type_words(value), quoted(value), valid));
}

ApiError missing_field(std::string_view param, std::string_view valid) {
  return bad_request("missing_required_parameter", param, fmt::format("{} is missing; valid: {}", param, valid));
}

ApiError model_not_found(std::string_view model, const std::vector<std::string>& served) {
  ApiError error = bad_request(
      "model_not_found", "model",
      fmt::format("model is {}; this server has: {}", quoted(Json(std::string(model))), fmt::join(served, ", ")));
  error.status = 404;
  return error;
}

ApiError context_length_exceeded(std::string_view param, const ContextNeed& need) {
  ApiError error = bad_request(
      "context_length_exceeded", param,
      fmt::format(
          "the context holds {} tokens; requested: {}{} ({} in {}, {} for the answer). Shorten {} or lower max_tokens",
          need.limit, need.at_least ? "at least " : "", need.prompt + need.output, need.prompt, param, need.output,
          param));
  error.should_retry = false;
  return error;
}

ApiError body_too_large(std::uint64_t bytes, std::uint64_t limit) {
  ApiError error =
      bad_request("request_too_large", "body", fmt::format("body is {} bytes; valid: at most {}", bytes, limit));
  error.status = 413;
  error.should_retry = false;
  return error;
}

ApiError overloaded(std::string message, std::uint32_t retry_after_s) {
  return {503, "server_error", "server_is_overloaded", "", std::move(message), retry_after_s, true};
}

ApiError slow_down(std::string message, std::uint32_t retry_after_s) {
  return {429, "rate_limit_error", "slow_down", "", std::move(message), retry_after_s, true};
}

ApiError from_error(const Error& error, std::string_view param) {
  switch (error.code) {
    case ErrorCode::usage:
    case ErrorCode::bad_input:
      return bad_request("invalid_value", param, error.message);
    case ErrorCode::unsupported:
      return bad_request("unsupported_value", param, error.message);
    case ErrorCode::does_not_fit: {
      ApiError out = bad_request("request_does_not_fit", param, error.message);
      out.should_retry = false;
      return out;
    }
    case ErrorCode::exhausted:
      return overloaded(error.message, 1);
    case ErrorCode::cancelled:
      return {503, "server_error", "cancelled", "", error.message, {}, true};
    case ErrorCode::io:
    case ErrorCode::internal:
      break;
  }
  return {500, "server_error", "internal_error", "", error.message, {}, {}};
}

std::string quoted(const Json& value) {
  if (value.is_array() && value.size() > kQuotedMembers) return fmt::format("a list of {}", value.size());
  if (value.is_object() && value.size() > kQuotedMembers) return fmt::format("an object of {}", value.size());
  // A long text is cut before it is escaped: one request may quote megabytes otherwise.
  if (value.is_string()) return report::to_json_line(shortened(value.get_ref<const std::string&>(), kQuotedBytes));
  if (value.is_structured() && std::any_of(value.begin(), value.end(), [](const Json& member) {
        return member.is_structured() ||
               (member.is_string() && member.get_ref<const std::string&>().size() > kQuotedBytes);
      })) {
    return fmt::format("{} of {}", value.is_array() ? "a list" : "an object", value.size());
  }
  return shortened(report::to_json_line(value), 4 * kQuotedBytes);
}

std::string_view type_words(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "text";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "a whole number";
    case Json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "unknown";
  }
}

}  // namespace kvasir::server::api
