// How many sequences of a length mix a memory serves. A mix takes the sum of its sequences' blocks, each rounded up by
// itself; the mean length times their number is another number.
// Thread rule: MixCapacity belongs to one thread; the rest is pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"
#include "plan/length_mix.hpp"
#include "plan/weighted_draw.hpp"

namespace kvasir::plan {

inline constexpr double kGuarantee = 0.99;  // share of draws that a guaranteed number fits in

class MixCapacity {
 public:
  // Errors: bad_input for a size that overflows.
  static Result<MixCapacity> create(const LengthMix& mix, const KvGroups& kv, std::uint64_t seed);

  // What so many sequences take if each length comes as often as its weight says: the exact sum where their number is a
  // multiple of the weights' sum. Errors: bad_input for a size that overflows.
  Result<HeldRows> expected(std::uint64_t sequences) const;
  // No more in 99 of 100 draws of so many sequences. For up to kDrawnSequences the 990th of 1,000 draws; for more the
  // sum is close enough to normal that its first three moments give it (Cornish-Fisher).
  Result<HeldRows> guaranteed(std::uint64_t sequences);

  double mean_block_bytes() const { return block_bytes_ / weight_; }
  double mean_payload_bytes() const { return payload_bytes_ / weight_; }
  double allocated_tokens() const { return allocated_tokens_ / weight_; }  // mean, each length rounded up to blocks

  static constexpr std::uint64_t kDrawnSequences = 1024;

 private:
  MixCapacity(WeightedDraw draw, std::uint64_t seed) : draw_(std::move(draw)), seed_(seed) {}
  Status add(const SequenceLength& one, const KvGroups& kv);
  void add_moments(const LengthMix& mix);
  Result<HeldRows> held(std::uint64_t sequences, double times) const;
  double sum_quantile(std::uint64_t sequences);  // bytes
  void draw_sums();

  WeightedDraw draw_;
  std::uint64_t seed_;
  double weight_ = 0, block_bytes_ = 0, payload_bytes_ = 0, allocated_tokens_ = 0;  // weighted sums over the mix
  std::vector<double> blocks_;                                                      // the same, of each group
  std::vector<double> each_;                                                        // block bytes of each length
  double deviation_ = 0, skewness_ = 0;                                             // of block bytes
  std::vector<double> sums_;  // [draw][sequences]: of the first sequences of each draw; empty until asked for
};

// The most sequences of the mix whose plan fits in `memory`: expected, and guaranteed; 0: not even one. input.requests
// and input.held do not count.
Result<std::uint64_t> most_expected(const PlanInput& input, const MixCapacity& mix, std::uint64_t memory);
Result<std::uint64_t> most_guaranteed(const PlanInput& input, MixCapacity& mix, std::uint64_t memory);

}  // namespace kvasir::plan
