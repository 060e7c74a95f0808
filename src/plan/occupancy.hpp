// How much cache a traffic holds over time: arrivals, each growing block by block over the time that it stays.
// Thread rule: pure; any thread.
//
// Memory is not limited and nothing waits: what is held is what the traffic asks for. Prefixes are not shared. Blocks
// are taken when their first row is written and given back at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "plan/service_model.hpp"

namespace kvasir::plan {

// Sequences begin at times that never decrease. Counted is what is held from from_s to to_s.
struct ArrivalPlan {
  struct Arrival {
    double at_s = 0;
    SequenceLength sequence;
  };
  std::vector<Arrival> arrivals;
  double from_s = 0, to_s = 0;
};

// A trace as it was, from its first to its last arrival. REQUIRES: mix.apart, an arrival for each length. Errors:
// bad_input if all arrive at one moment.
Result<ArrivalPlan> recorded_arrivals(const LengthMix& mix);

// Poisson arrivals of lengths drawn from the mix. What is counted begins when the longest stay has passed, so that the
// traffic is in its steady state, and goes on for 5,000 arrivals and 20 mean stays at least. REQUIRES: mix.apart, rate
// > 0. Errors: bad_input naming the rate and what would be valid, if that takes more than kMaxArrivals.
inline constexpr std::uint64_t kMaxArrivals = std::uint64_t{1} << 20;
Result<ArrivalPlan> poisson_arrivals(const LengthMix& mix, double rate_per_s, const ServiceModel& service,
                                     std::uint64_t seed);

// Over time: the smallest value that is not exceeded for such a share of it.
struct TimePercentiles {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
};

struct Occupancy {
  std::uint64_t arrivals = 0;  // simulated
  double seconds = 0;          // counted
  TimePercentiles sequences;
  TimePercentiles tokens;  // taken as growing evenly, and between two events as half-way
  TimePercentiles blocks;  // of all groups
  TimePercentiles bytes;   // of those blocks, and of recurrent states
};

// Errors: bad_input for more than kMaxEvents begun blocks and sequences, naming their number; for a size that
// overflows.
inline constexpr std::uint64_t kMaxEvents = 2'000'000;
Result<Occupancy> simulate_occupancy(const ArrivalPlan& plan, const KvGroups& kv, std::uint32_t block_tokens,
                                     const ServiceModel& service);

}  // namespace kvasir::plan
