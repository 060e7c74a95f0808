// What will be sent and when, decided before the clock starts: conversations with their arrivals, turns and lengths.
// A conversation of one turn is a plain request. Later turns come a think time after the answer before them, as a
// person would: within a conversation the load is closed, across conversations it is open. Pure functions, any thread;
// the same options give the same plan on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "load/arrivals.hpp"
#include "trace/trace.hpp"

namespace kvasir::load {

struct Turn {
  std::uint32_t input_tokens = 0;   // new in this turn
  std::uint32_t output_tokens = 0;  // asked for
  double think_s = 0;               // after the answer before; 0 in the first turn
};

struct Conversation {
  double arrival_s = 0;  // of the first turn, since the start
  std::vector<Turn> turns;
  std::vector<std::uint64_t> block_ids;  // of the first turn's prompt, from a trace
};

struct Plan {
  std::vector<Conversation> conversations;  // arrivals ascending
  std::uint32_t block_tokens = 0;           // tokens a block id stands for
  std::size_t requests() const;
};

struct LengthOptions {
  std::uint32_t input_tokens = 1024;
  std::uint32_t output_tokens = 128;
  double range_ratio = 0;  // in [0, 1): lengths are uniform in [length (1 - ratio), length (1 + ratio)], at least 1
  std::uint64_t seed = 0;
};

struct TurnOptions {
  std::uint32_t turns = 1;
  double think_s = 0;
};

Plan plan_random(std::size_t conversations, const ArrivalOptions& arrivals, const LengthOptions& lengths,
                 const TurnOptions& turns);

struct TraceOptions {
  double time_scale = 1;     // arrivals times this: 0.1 plays a trace ten times as fast
  double length_scale = 1;   // lengths, and what a block id stands for, times this; at least one token
  bool own_arrivals = true;  // false: `arrivals` decides, the trace gives lengths alone
};

// The first `requests` of the trace (all if it has fewer), one turn each.
Plan plan_trace(const trace::Trace& trace, std::size_t requests, const ArrivalOptions& arrivals,
                const TraceOptions& options);

}  // namespace kvasir::load
