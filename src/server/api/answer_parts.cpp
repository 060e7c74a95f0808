#include "server/api/answer_parts.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace kvasir::server::api {

Json head_json(const AnswerHead& head, std::string_view object) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint}};
}

std::string open_head(const AnswerHead& head, std::string_view object) {
  std::string out = report::to_json_line(head_json(head, object));
  out.back() = ',';  // in place of the brace that would close it
  return out;
}

Usage::Usage(std::size_t prompts, std::uint32_t n)
    : n_(n), prompt_(prompts), cached_(prompts), completion_(prompts * n) {}

void Usage::note(const ChoiceEvent& event) {
  KV_CHECK(event.index < completion_.size(), "an answer of this request");
  const std::size_t prompt = event.index / n_;
  prompt_[prompt] = std::max(prompt_[prompt], event.prompt_tokens);
  completion_[event.index] = event.completion_tokens;
  // Later answers to a prompt find what the first one left; only the first tells what was there before.
  if (event.index % n_ != 0) return;
  KV_CHECK(event.cached_tokens == 0 || event.cached_tokens < event.prompt_tokens,
           "a prompt's last token is always computed");
  cached_[prompt] = event.cached_tokens;
}

Json Usage::json() const {
  const auto sum = [](const std::vector<std::uint32_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  };
  const std::uint64_t completion = sum(completion_) + left_out_;
  return {{"prompt_tokens", sum(prompt_)},
          {"completion_tokens", completion},
          {"total_tokens", sum(prompt_) + completion},
          {"prompt_tokens_details", {{"cached_tokens", sum(cached_)}, {"cache_write_tokens", 0}}}};
}

void end_stream(const Usage* usage, const std::string& head, std::vector<std::string>& payloads) {
  if (usage != nullptr) payloads.push_back(head + "\"choices\":[],\"usage\":" + usage->json().dump() + "}");
  payloads.emplace_back(kStreamEnd);
}

Json stop_reason(const ChoiceEvent& event) {
  if (!event.stop_text.empty()) return event.stop_text;
  return event.stop_token >= 0 ? Json(event.stop_token) : Json(nullptr);
}

Json finish_reason(const ChoiceEvent& event) {
  return event.finish == engine::FinishReason::none ? Json(nullptr) : Json(engine::to_string(event.finish));
}

ApiError failure_of(const ChoiceEvent& event) {
  ApiError error;
  error.code = "internal_error";
  error.message = event.error.empty() ? "the answer failed" : std::string(event.error);
  error.should_retry = true;  // nothing about the request is to blame
  return error;
}

}  // namespace kvasir::server::api
