// What a streamed answer of an OpenAI endpoint says, and when each piece came: text, token times, usage, errors.
// A piece counts as a token if it carries text, reasoning, a tool call, or nothing but itself; not if it only names the
// role (a server may send that before the prompt is read) or only the reason for the end. `vllm bench serve` counts
// every chunk that has choices.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/sse.hpp"

namespace kvasir::client {

enum class Api { completions, chat };

struct StreamedAnswer {
  std::vector<std::uint64_t> token_ns;  // when each piece came (platform/clock.hpp), never decreasing
  std::string text;
  std::string finish_reason;
  std::optional<std::uint64_t> prompt_tokens, completion_tokens, cached_tokens;  // of the usage, if it was sent
  bool done = false;                                                             // "[DONE]" came
  std::string error;  // of an error event, or what is wrong with the stream; empty if all is well
};

class AnswerStream {
 public:
  explicit AnswerStream(Api api);
  AnswerStream(const AnswerStream&) = delete;  // the reader calls back into this object
  AnswerStream& operator=(const AnswerStream&) = delete;

  // ns: when the bytes came off the socket.
  void feed(std::string_view bytes, std::uint64_t ns);
  // The body ended.
  void finish();

  const StreamedAnswer& answer() const { return answer_; }
  StreamedAnswer take() { return std::move(answer_); }

 private:
  void on_event(const SseEvent& event);
  void fail(std::string message);

  Api api_;
  SseReader reader_;
  StreamedAnswer answer_;
  std::uint64_t now_ns_ = 0;
};

}  // namespace kvasir::client
