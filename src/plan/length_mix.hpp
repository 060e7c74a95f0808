// How long the sequences of a traffic are: what a plan for many of them starts from, in place of one length for all.
// Thread rule: pure values and functions; any thread.
//
// Invariants (those who make one check them): at least one length; weights are not negative, their sum is positive and
// at most kMaxMixWeight; lengths lie in [1, kMaxLength].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "trace/trace.hpp"

namespace kvasir::plan {

inline constexpr std::size_t kMaxMixLengths = std::size_t{1} << 20;
inline constexpr double kMaxMixWeight = 1e15;  // sums of weights stay exact for whole weights

struct SequenceLength {
  std::uint64_t prompt = 0;  // tokens; all of them where the mix does not tell the answer apart
  std::uint64_t output = 0;  // tokens generated
  double weight = 1;         // how often, beside the others

  std::uint64_t length() const { return prompt + output; }
};

struct LengthMix {
  std::vector<SequenceLength> lengths;  // of a trace: in order of arrival
  std::vector<double> arrivals_s;       // of a trace that has them: one a length, never decreasing
  bool apart = false;                   // whether prompt and output are told apart

  double weight() const;
  std::uint64_t longest() const;
};

struct MixSummary {
  double mean = 0, mean_prompt = 0, mean_output = 0;              // tokens
  std::uint64_t p50 = 0, p90 = 0, p95 = 0, p99 = 0, longest = 0;  // the shortest length that so many do not exceed
};
MixSummary summarize(const LengthMix& mix);

// From text:
//   512:40,2048:35,8192:25            length:weight
//   400+112:40,1500+548:60            prompt+output:weight
//   p50=800,p90=2000,p99=8000,max=16000   percentiles; also p99.9, and min (1 if not given)
// Between two percentiles the length grows evenly with the share, from min at 0 % to max at 100 %; the mix is then
// 10,000 sequences at the middles of equal shares, each rounded up to whole tokens. Errors: bad_input naming the entry,
// its value and what would be valid: an entry that is neither form, a mixture of forms, a length that is not from 1 to
// kMaxLength, a weight that is negative or not a number, weights that sum to 0 or beyond kMaxMixWeight, percentiles out
// of order or that decrease, no max, more than kMaxMixLengths entries.
Result<LengthMix> parse_mix(std::string_view text);

// Each request once. Errors: bad_input for more than kMaxMixLengths requests.
Result<LengthMix> mix_of(const trace::Trace& trace);

}  // namespace kvasir::plan
