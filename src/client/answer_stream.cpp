#include "client/answer_stream.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kvasir::client {
namespace {

using Json = nlohmann::json;

// Members of what may not be an object, or may lack the key: null then.
const Json& member(const Json& value, const char* key) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(key);
  return found == value.end() ? null : *found;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

std::optional<std::uint64_t> count_of(const Json& value) {
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

std::string error_text(const Json& error) {
  const std::string message = text_of(member(error, "message"));
  return message.empty() ? error.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 300) : message;
}

struct Piece {
  std::string text;
  bool token = false;
};

Piece piece_of(const Json& choice, Api api) {
  const bool ends = !member(choice, "finish_reason").is_null();
  if (api == Api::completions) {
    Piece piece{text_of(member(choice, "text"))};
    piece.token = !piece.text.empty() || !ends;
    return piece;
  }
  const Json& delta = member(choice, "delta");
  Piece piece{text_of(member(delta, "content"))};
  std::string thought = text_of(member(delta, "reasoning_content"));
  if (thought.empty()) thought = text_of(member(delta, "reasoning"));
  const bool calls = member(delta, "tool_calls").is_array() && !member(delta, "tool_calls").empty();
  const bool bare = !ends && member(delta, "role").is_null();
  piece.token = !piece.text.empty() || !thought.empty() || calls || bare;
  return piece;
}

}  // namespace

AnswerStream::AnswerStream(Api api) : api_(api), reader_([this](const SseEvent& event) { on_event(event); }) {}

void AnswerStream::feed(std::string_view bytes, std::uint64_t ns) {
  now_ns_ = ns;
  if (const Status status = reader_.feed(bytes); !status.ok()) fail(status.error().message);
}

void AnswerStream::finish() {
  if (const Status status = reader_.finish(); !status.ok()) fail(status.error().message);
}

void AnswerStream::fail(std::string message) {
  if (answer_.error.empty()) answer_.error = std::move(message);
}

void AnswerStream::on_event(const SseEvent& event) {
  if (event.data == "[DONE]") {
    answer_.done = true;
    return;
  }
  const Json chunk = Json::parse(event.data, nullptr, false);
  if (!chunk.is_object())
    return fail(fmt::format("an event of the stream is no JSON object: '{}'", event.data.substr(0, 80)));
  if (const Json& error = member(chunk, "error"); !error.is_null()) return fail(error_text(error));
  const Json& usage = member(chunk, "usage");  // at the end, or with every chunk: the last counts
  if (const auto count = count_of(member(usage, "prompt_tokens"))) answer_.prompt_tokens = count;
  if (const auto count = count_of(member(usage, "completion_tokens"))) answer_.completion_tokens = count;
  if (const auto count = count_of(member(member(usage, "prompt_tokens_details"), "cached_tokens")))
    answer_.cached_tokens = count;
  const Json& choices = member(chunk, "choices");
  if (!choices.is_array() || choices.empty() || !choices[0].is_object()) return;
  Piece piece = piece_of(choices[0], api_);
  if (const std::string reason = text_of(member(choices[0], "finish_reason")); !reason.empty())
    answer_.finish_reason = reason;
  answer_.text += piece.text;
  if (piece.token) answer_.token_ns.push_back(now_ns_);
}

}  // namespace kvasir::client
