// A request's life:
//
//   queued -> prefilling -> decoding -> finished
//      \__________\____________\________/            cancel(), at any moment
//
// A request that has filled its context may go on (CoreConfig::context_keep): it lets old tokens go, is queued again and
// computes those it kept anew, at their new positions.
//
// Beams are requests that live and end together, led by the first: it alone is queued and computes the prompt, the others
// branch off it then. Clients of the core know the first.
//
// Thread rule: a value owned by the core.
// Invariants: computed <= tokens.size(); generated = tokens.size() + dropped - prompt_tokens <= max_new_tokens;
// it holds a cache sequence if and only if it is prefilling or decoding; shared_rows < prefill were not computed by it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "cache/claims.hpp"
#include "sched/queue_policy.hpp"

namespace kvasir::core {

enum class RequestState : std::uint8_t { queued, prefilling, decoding, finished, unborn };   // unborn: a beam before it branches

enum class FinishReason : std::uint8_t {
  none,    // not finished
  stop,    // the caller of apply() said so
  length,  // max_new_tokens reached
  cancelled,
  error,  // can no longer be served: `refusal` says why
};

std::string_view to_string(RequestState state);
std::string_view to_string(FinishReason reason);

struct RequestSpec {
  std::span<const TokenId> prompt;   // at least one token; copied
  std::uint64_t max_new_tokens = 0;  // 0: compute the prompt, sample nothing
  std::int32_t priority = 0;         // lower goes first, under Policy::priority
  std::uint64_t arrived_us = 0;      // on the clock that plan() is called with
  // Requests of one number that have the same prompt (n answers to one question) compute it once: those that come after share
  // its rows but the last, which each computes for its own first token. 0: none.
  std::uint64_t family = 0;
  std::uint32_t beams = 1;   // sequences that go on from each other, 1 to max_num_seqs; not with a family
};

struct Request {
  RequestId id;
  RequestState state = RequestState::queued;
  FinishReason reason = FinishReason::none;
  bool cancel_requested = false;  // takes effect when the step in flight ends
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_new_tokens = 0;
  std::uint32_t prefill = 0;    // rows to compute before its next token: the prompt, or what it kept of its context
  std::uint32_t dropped = 0;    // tokens let go: those that `tokens` lacks
  std::uint32_t computed = 0;   // rows whose values are in the cache
  std::uint32_t shared_rows = 0;   // of them, begun with: another of the family had computed them
  std::uint32_t in_flight = 0;  // rows that the step in flight is computing
  std::int32_t priority = 0;
  std::uint64_t arrived_us = 0;
  std::uint64_t family = 0;
  RequestId leader;             // of its beams; itself where there are none
  std::uint32_t beams = 1;      // how many there are
  sched::QueuePlace place;      // among those queued, and among those running
  std::vector<TokenId> tokens;  // prompt, then output, without what was let go; capacity for all of it since submit
  SequenceId sequence;          // in the cache, while admitted
  cache::FitVerdict refusal;    // with FinishReason::error

  std::uint32_t generated() const { return static_cast<std::uint32_t>(tokens.size()) + dropped - prompt_tokens; }
  bool running() const { return state == RequestState::prefilling || state == RequestState::decoding; }
  // REQUIRES: nothing was let go.
  std::span<const TokenId> output() const { return std::span(tokens).subspan(prompt_tokens); }
};

}  // namespace kvasir::core
