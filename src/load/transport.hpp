// What the generator sends through, and whose clock it goes by: a real server (load/live_transport.hpp), or in tests a
// simulated one under simulated time, so that what the generator does can be checked to the nanosecond.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/answer_stream.hpp"

namespace kvasir::load {

struct Outcome {
  std::uint64_t id = 0;    // as given to send()
  std::string error_kind;  // empty: all went well. Else "connect", "timeout", "http_503", "stream", ...
  std::string error_message;
  client::StreamedAnswer answer;
  std::uint64_t ended_ns = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::uint64_t now_ns() = 0;
  // Returns at once.
  virtual void send(std::uint64_t id, std::string body) = 0;
  // Returns at `until_ns`, or as soon as something has ended; appends all that has.
  virtual void wait(std::uint64_t until_ns, std::vector<Outcome>& ended) = 0;
  // Ends everything that runs, with the kind "cancelled"; wait() still hands it out.
  virtual void cancel_all() = 0;
};

}  // namespace kvasir::load
