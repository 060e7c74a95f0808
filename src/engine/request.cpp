#include "engine/request.hpp"

#include <fmt/format.h>

#include "sched/queue_policy.hpp"
#include "text/utf8.hpp"

namespace kvasir::engine {

Status validate(const GenerateRequest& request) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::bad_input, "prompt has 0 tokens, valid: at least 1"};
  }
  if (request.max_tokens == 0u && !request.prompt_logits && request.prompt_logprobs < 0) {
    return Error{ErrorCode::bad_input,
                 "max_tokens is 0, valid: at least 1 (0 only with prompt_logits or prompt_logprobs)"};
  }
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > kMaxTopLogprobs) {
    return Error{ErrorCode::bad_input, fmt::format("prompt_logprobs is {}, valid: -1 (none), or 0 to {} alternatives",
                                                   request.prompt_logprobs, kMaxTopLogprobs)};
  }
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens) {
    return Error{ErrorCode::bad_input, fmt::format("min_tokens is {}, valid: 0 to max_tokens ({})",
                                                   request.sampling.min_tokens, *request.max_tokens)};
  }
  if (request.stop.size() > kMaxStopStrings) {
    return Error{ErrorCode::bad_input,
                 fmt::format("stop has {} strings, valid: at most {}", request.stop.size(), kMaxStopStrings)};
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      return Error{ErrorCode::bad_input,
                   fmt::format("stop has a string of {} bytes, valid: 1 to {} each", stop.size(), kMaxStopBytes)};
    }
    if (text::first_invalid_utf8(stop)) {
      return Error{ErrorCode::bad_input, "stop has a string that is not valid UTF-8, valid: UTF-8 text"};
    }
  }
  KV_TRY(sched::validate_priority(request.priority));
  return validate(request.sampling);
}

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::none: return "";
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::error: return "error";
  }
  return "";
}

}  // namespace kvasir::engine
