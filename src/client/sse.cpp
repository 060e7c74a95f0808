#include "client/sse.hpp"

#include <fmt/format.h>

namespace kvasir::client {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

SseReader::SseReader(OnEvent on_event, std::size_t event_bytes_max)
    : on_event_(std::move(on_event)), event_bytes_max_(event_bytes_max) {}

Status SseReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + event_.data.size() + part.size() > event_bytes_max_) {
      return Error{ErrorCode::bad_input,
                   fmt::format("an event of the stream has more than {} bytes", event_bytes_max_)};
    }
    line_ += part;
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    KV_TRY(end_line());
  }
  return ok_status();
}

Status SseReader::finish() {
  if (!line_.empty()) KV_TRY(end_line());
  dispatch();
  return ok_status();
}

Status SseReader::end_line() {
  const std::string line = std::move(line_);
  line_.clear();
  std::string_view text = line;
  if (at_start_ && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (text.empty()) {
    dispatch();
    return ok_status();
  }
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  }  // id, retry and unknown fields mean nothing here; an empty field is a comment
  return ok_status();
}

void SseReader::dispatch() {
  if (has_data_) on_event_(event_);
  event_ = {};
  has_data_ = false;
}

}  // namespace kvasir::client
