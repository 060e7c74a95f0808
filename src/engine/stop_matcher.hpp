// Finds stop strings in a text that arrives in pieces, and holds back what may become one.
//
// Which one counts: the one that is complete first; of those complete at the same byte the longest. Both follow from the
// text alone, so cutting it differently into tokens never changes the answer, and streamed text joined equals text not
// streamed.
//
// Thread rule: one owner. Allocates at construction; push() only if `out` or the held text outgrows its capacity.
// Invariants: held() <= longest stop - 1: exactly the longest end of the text that begins a stop string. Given text in
// whole UTF-8 characters and UTF-8 stops, every piece given out is whole characters too.
// Source: Knuth, Morris, Pratt, "Fast pattern matching in strings", SIAM J. Comput. 6 (1977): one automaton a string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::engine {

class StopMatcher {
 public:
  // No stop strings: everything passes through. include: the answer keeps the stop string that ended it.
  // REQUIRES: no empty string.
  explicit StopMatcher(std::span<const std::string> stops = {}, bool include = false);

  // Appends the part of the text that can no longer be a stop string to `out`. Returns the index of the stop string that
  // is complete now, or -1. After a match nothing more is taken. REQUIRES: no match so far.
  // armed: false, and a stop string that is complete within this piece is text like any other (before min_tokens).
  std::int32_t push(std::string_view piece, std::string& out, bool armed = true);
  // The text ended without a match: what was held is text.
  void flush(std::string& out);

  std::size_t held() const { return held_.size(); }

 private:
  struct Automaton {
    std::string stop;
    std::vector<std::uint32_t> failure;   // [i]: longest proper prefix of stop[0..i] that is its suffix too
    std::uint32_t matched = 0;            // bytes of `stop` that the text now ends with
    // Takes one byte; true if the stop string is complete.
    bool feed(char byte);
    // Goes on after a stop string that did not count.
    void pass() { matched = failure.back(); }
  };

  std::vector<Automaton> automata_;
  std::string held_;
  bool include_ = false;
  bool done_ = false;
};

}  // namespace kvasir::engine
