// Random draws of an index by weight, in constant time each.
// Thread rule: immutable after construction; the sequence belongs to one thread.
// Source: Vose, A linear algorithm for generating random numbers with a given distribution, 1991 (alias method).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.hpp"

namespace kvasir::plan {

class WeightedDraw {
 public:
  // REQUIRES: weights not negative with a positive, finite sum; fewer than 2^32 of them.
  explicit WeightedDraw(std::span<const double> weights);

  // Index i with probability weights[i] / sum, within 2^-32.
  std::uint32_t draw(PhiloxSequence& draws) const;

 private:
  struct Slot {
    std::uint64_t keep = 0;   // of 2^32 draws that fall here, so many are the slot's own index
    std::uint32_t other = 0;  // what the rest are
  };
  std::vector<Slot> slots_;
};

}  // namespace kvasir::plan
