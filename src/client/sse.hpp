// Server-sent events out of bytes that arrive cut anywhere: lines end in LF, CR or CRLF, comments are dropped, several
// data lines of one event are joined by LF, a byte order mark at the start is skipped.
// Thread rule: one thread at a time.
// Errors: bad_input for an event of more than the limit; nothing is given out afterwards.
// Source: WHATWG HTML, section 9.2 (event stream interpretation).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace kvasir::client {

struct SseEvent {
  std::string type;  // of the "event" field; empty means "message"
  std::string data;
};

class SseReader {
 public:
  using OnEvent = std::function<void(const SseEvent&)>;
  explicit SseReader(OnEvent on_event, std::size_t event_bytes_max = 16u << 20);

  Status feed(std::string_view bytes);
  // The stream ended. Gives out an event whose blank line never came: the standard drops it, but servers that forget
  // the last newline mean it.
  Status finish();

 private:
  Status end_line();
  void dispatch();

  OnEvent on_event_;
  std::size_t event_bytes_max_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // an LF next belongs to the CR before it
  bool at_start_ = true;
};

}  // namespace kvasir::client
