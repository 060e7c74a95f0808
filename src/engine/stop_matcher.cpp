#include "engine/stop_matcher.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

std::vector<std::uint32_t> failure_table(std::string_view stop) {
  std::vector<std::uint32_t> failure(stop.size(), 0);
  for (std::size_t i = 1; i < stop.size(); ++i) {
    std::uint32_t k = failure[i - 1];
    while (k > 0 && stop[i] != stop[k]) k = failure[k - 1];
    failure[i] = stop[i] == stop[k] ? k + 1 : k;
  }
  return failure;
}

}  // namespace

bool StopMatcher::Automaton::feed(char byte) {
  while (matched > 0 && byte != stop[matched]) matched = failure[matched - 1];
  if (byte == stop[matched]) ++matched;
  return matched == stop.size();
}

StopMatcher::StopMatcher(std::span<const std::string> stops, bool include) : include_(include) {
  std::size_t longest = 0;
  automata_.reserve(stops.size());
  for (const std::string& stop : stops) {
    KV_CHECK(!stop.empty(), "a stop string has at least one byte");
    automata_.push_back({stop, failure_table(stop), 0});
    longest = std::max(longest, stop.size());
  }
  held_.reserve(2 * longest);
}

std::int32_t StopMatcher::push(std::string_view piece, std::string& out, bool armed) {
  KV_CHECK(!done_, "nothing follows a stop string");
  if (automata_.empty()) {
    out.append(piece);
    return -1;
  }
  for (const char byte : piece) {
    held_.push_back(byte);
    std::size_t longest_start = 0;   // longest end of the text that begins a stop string
    std::int32_t match = -1;
    for (std::size_t i = 0; i < automata_.size(); ++i) {
      Automaton& automaton = automata_[i];
      const bool complete = automaton.feed(byte) && armed;
      if (automaton.matched == automaton.stop.size() && !armed) automaton.pass();
      const auto better = [&](std::int32_t other) {
        return other < 0 || automaton.stop.size() > automata_[static_cast<std::size_t>(other)].stop.size();
      };
      if (complete && better(match)) match = static_cast<std::int32_t>(i);
      longest_start = std::max<std::size_t>(longest_start, automaton.matched);
    }
    if (match >= 0) {
      const std::size_t stop_bytes = automata_[static_cast<std::size_t>(match)].stop.size();
      out.append(held_, 0, include_ ? held_.size() : held_.size() - stop_bytes);
      held_.clear();
      done_ = true;
      return match;
    }
    const std::size_t safe = held_.size() - longest_start;
    out.append(held_, 0, safe);
    held_.erase(0, safe);
  }
  return -1;
}

void StopMatcher::flush(std::string& out) {
  out.append(held_);
  held_.clear();
  done_ = true;
}

}  // namespace kvasir::engine
