// What became of a request: all that metrics are made of.
// Thread rule: a value.
// Invariants: scheduled_ns <= sent_ns <= token_ns (ascending) for one that was sent; a good one has a token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::load {

struct RequestRecord {
  std::uint32_t conversation = 0, turn = 0;
  std::uint64_t scheduled_ns = 0;       // when it should have been sent; every time is of one monotonic clock
  std::uint64_t sent_ns = 0;            // when it was: later if --max-concurrency held it back. 0: never sent
  std::uint64_t ended_ns = 0;           // its exchange was over
  std::vector<std::uint64_t> token_ns;  // when each piece of the answer came
  std::uint64_t input_tokens = 0;       // by the server's usage, else as planned
  std::uint64_t output_tokens = 0;      // by the server's usage, else the pieces that came
  std::uint64_t cached_tokens = 0;      // of the input, by the server's usage
  bool counted_by_server = false;       // usage was sent
  std::string text;
  std::string error_kind = "not_sent";  // empty: it went well
  std::string error_message;

  bool good() const { return error_kind.empty(); }
};

struct RunRecord {
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;           // the last exchange was over
  std::vector<RequestRecord> requests;  // by conversation, then turn
  bool interrupted = false;
};

}  // namespace kvasir::load
