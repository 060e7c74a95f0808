// What ways of reserving memory make of one length mix: contiguous memory for the longest sequence, for a power of two,
// for the exact length, and paged blocks. Thread rule: pure; any thread. Source: Kwon et al., PagedAttention, SOSP
// 2023, section 3.1 and figure 2, whose "Orca (Max)", "Orca (Pow2)" and "Orca (Oracle)" are contiguous_max,
// contiguous_pow2_output and contiguous_exact. The external fragmentation of their buddy allocator is not in here:
// sequences lie side by side without gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/service_model.hpp"

namespace kvasir::plan {

enum class ReservationPolicy : std::uint8_t {
  contiguous_max,          // the longest length that is allowed, for each
  contiguous_pow2,         // the final length rounded up to a power of two, at most the longest
  contiguous_pow2_output,  // the prompt, and the answer's length rounded up to a power of two; at most the longest
  contiguous_exact,        // the final length, known beforehand
  paged_claimed,           // all of the final length's blocks from the beginning: admission that never evicts
  paged,                   // each block when its first row is written
};
std::string_view to_string(ReservationPolicy policy);

// Shares are of reserved byte-seconds, each sequence as long as it stays (service_model.hpp): what a look at a random
// moment finds. used + unfilled + waste = 1. Where the mix does not tell prompt from output, only the end is known:
// every sequence at its final length, all staying equally long; `used` and `unfilled` are none, `waste` is that of the
// end.
struct Reservation {
  ReservationPolicy policy = ReservationPolicy::paged;
  double reserved_bytes = 0;             // of a sequence, on average
  std::optional<double> used_share;      // holds token states ("token states" of the paper)
  std::optional<double> unfilled_share;  // will hold states of the same sequence later ("reservation")
  double waste_share = 0;                // never will ("internal fragmentation")
  double end_waste_share = 0;            // of what is reserved when sequences end
  double concurrency = 0;                // sequences that equal memory holds, beside paged
};

// allowed: tokens of the longest sequence that is allowed. Without contiguous_pow2_output where the mix does not tell
// prompt from output; none for a model without KV rows. REQUIRES: allowed >= the mix's longest.
// Errors: bad_input for a size that overflows.
Result<std::vector<Reservation>> compare_reservations(const LengthMix& mix, const KvGroups& kv, std::uint64_t allowed,
                                                      const ServiceModel& service);

}  // namespace kvasir::plan
