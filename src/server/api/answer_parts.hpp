// What the answers of chat and completions have in common: the head that every chunk repeats, and the usage.
//
// Thread rule: values; one owner.
// Source: the OpenAI API description; what clients check (vllm bench, guidellm, aiperf, inference-perf).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.hpp"
#include "server/api/choice_event.hpp"

namespace kvasir::server::api {

inline constexpr std::string_view kStreamEnd = "[DONE]";

struct AnswerHead {
  std::string id;            // "chatcmpl-..." or "cmpl-..."
  std::int64_t created = 0;  // seconds since 1970
  std::string model;         // the served name that was asked for
  std::string fingerprint;
};

// {"id", "object", "created", "model", "system_fingerprint"}.
Json head_json(const AnswerHead& head, std::string_view object);

// The head as the beginning of a JSON object that goes on with further members: rendered once a stream.
std::string open_head(const AnswerHead& head, std::string_view object);

// Tokens of one request.
// Invariants: a prompt counts once, however many answers it has; total = prompt + completion; 0 <= cached < prompt for
// every prompt, and cached_tokens is always there.
class Usage {
 public:
  // n: answers to each prompt.
  Usage(std::size_t prompts, std::uint32_t n);

  void note(const ChoiceEvent& event);
  // Tokens of answers that were generated and do not come back.
  void add_left_out(std::uint64_t tokens) { left_out_ += tokens; }
  Json json() const;

 private:
  std::uint32_t n_;
  std::vector<std::uint32_t> prompt_, cached_;  // [prompts]
  std::vector<std::uint32_t> completion_;       // [prompts * n]
  std::uint64_t left_out_ = 0;
};

// What follows the last choice of a stream: the usage in a chunk without choices, if there is one to tell, then [DONE].
// head: open_head()'s.
void end_stream(const Usage* usage, const std::string& head, std::vector<std::string>& payloads);

// null, the stop text, or the stop token: vLLM's stop_reason.
Json stop_reason(const ChoiceEvent& event);
// null while it goes on.
Json finish_reason(const ChoiceEvent& event);
// A failure in the middle of an answer.
ApiError failure_of(const ChoiceEvent& event);

}  // namespace kvasir::server::api
