// How long a sequence stays, and what it holds meanwhile.
// Thread rule: pure; any thread.
//
//   [0, prompt / prefill rate)      the prompt, taken whole when the sequence begins
//   then, for j = 1 .. output       prompt + j tokens, for one ITL each
//
// Other load does not slow a sequence: rate and ITL are what the server is run at.
#pragma once

#include <cstdint>

#include "plan/kv_groups.hpp"
#include "plan/length_mix.hpp"

namespace kvasir::plan {

struct ServiceModel {
  double prefill_tokens_per_s = 10'000;
  double itl_s = 0.03;  // from a token to the next

  double prefill_s(const SequenceLength& one) const { return static_cast<double>(one.prompt) / prefill_tokens_per_s; }
  double residence_s(const SequenceLength& one) const {
    return prefill_s(one) + static_cast<double>(one.output) * itl_s;
  }
};

// Byte-seconds of one sequence from its beginning to its end. Doubles: no size overflows them.
struct HeldOverLife {
  double residence_s = 0;
  double payload = 0;  // what its rows take
  double blocks = 0;   // what its blocks take, each taken when its first row is written
  double unused = 0;   // of `blocks`: rows that this sequence never writes
};
HeldOverLife held_over_life(const KvGroups& kv, const SequenceLength& one, const ServiceModel& service);

// The sum of min(ceil(i / step), cap) over i = 1 .. length. REQUIRES: step > 0.
double ramp_sum(std::uint64_t length, std::uint64_t step, std::uint64_t cap);

}  // namespace kvasir::plan
