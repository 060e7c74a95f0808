// What the engine loop tells about one stream (one answer to one prompt, or the answers of one beam search), and to whom.
// Thread rule: events are values; a sink is called on the loop's thread alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "engine/request.hpp"

namespace kvasir::server {

struct StreamTag;
using StreamId = StrongId<StreamTag, std::uint64_t>;

// Moments of a stream's life, nanoseconds of platform::monotonic_ns(); 0 = not reached (yet).
struct StreamTimes {
  std::uint64_t queued_ns = 0;       // accepted by submit()
  std::uint64_t scheduled_ns = 0;    // the step that first computed rows of it began
  std::uint64_t first_token_ns = 0;  // its first answer token was there
  std::uint64_t end_ns = 0;
};

// One token. Owns its text and logprobs; the loop reuses the object, so a sink copies what it keeps.
struct TokenEvent {
  StreamId stream;
  std::uint32_t choice = 0;  // SamplingParams::choice of the request; of a beam search, which of its answers
  TokenId token = -1;
  std::uint32_t position = 0;  // in its sequence, prompt included
  bool prompt = false;         // a token of the prompt, with GenerateRequest::prompt_logprobs
  std::string text;            // complete UTF-8 that became final with this token; may be empty
  bool has_logprob = false;
  float logprob = 0;
  std::uint32_t rank = 0;  // of a prompt token
  std::vector<engine::TokenLogprob> top_logprobs;
  std::uint32_t prompt_tokens = 0, completion_tokens = 0;  // so far, of this answer
  // The answer's last token. An answer of a beam search ends with it: the stream goes on until all have.
  engine::FinishReason finish = engine::FinishReason::none;
  TokenId stop_token = -1;  // with finish: which of stop_token_ids ended it; -1: none of them
  std::uint64_t at_ns = 0;                                 // when it was there
  StreamTimes times;
};

enum class EndReason : std::uint8_t {
  stop,       // an end-of-text token, a stop token or a stop string
  length,     // max_tokens or the context is used up; a scored prompt is done
  cancelled,  // cancel() came first
  shutdown,   // the drain's deadline passed, or the loop was stopped
  error,      // EndEvent::error says why
};
inline constexpr std::size_t kEndReasons = 5;
std::string_view to_string(EndReason reason);

struct EndEvent {
  StreamId stream;
  std::uint32_t choice = 0;
  EndReason reason = EndReason::stop;
  std::int32_t stop_index = -1;  // which stop string ended it; -1: none of them
  TokenId stop_token = -1;       // which of stop_token_ids ended it; -1: none of them
  std::optional<Error> error;    // with EndReason::error
  std::uint32_t prompt_tokens = 0, completion_tokens = 0;  // of all its answers
  StreamTimes times;
};

// Where a stream's events go. The loop holds it until on_end() has returned.
// on_token() for each token in order, then on_end() exactly once for every stream that submit() accepted, however it
// ended; nothing after that. Both run on the loop's thread between two steps, so they must not block (every stream
// waits meanwhile) and not throw (the loop ends as failed). They may call submit() and cancel() of the loop.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void on_token(const TokenEvent& event) = 0;
  virtual void on_end(const EndEvent& event) = 0;
};

}  // namespace kvasir::server
