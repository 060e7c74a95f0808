// Bootstrap confidence intervals for paired samples: how far a difference between two systems, measured on the same
// items, could be chance. Deterministic: the same samples and options give the same interval on every machine.
//
// Pure functions, any thread.
// Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993 (percentile interval); Politis and Romano 1992
// (circular blocks for samples in a sequence, whose neighbours are not independent).
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace kvasir::stats {

struct BootstrapOptions {
  std::uint32_t resamples = 2000;
  double confidence = 0.95;  // of the two-sided interval, within (0, 1)
  std::uint32_t block = 1;   // items drawn together: 1 for independent items, more for items in a sequence
  std::uint64_t seed = 1;
};

struct Interval {
  double estimate = 0;  // on the samples as they are
  double low = 0;
  double high = 0;
};

// mean(numerator) / mean(denominator) with its percentile interval: item i of both is drawn together, so what an item
// does to both cancels. A resample whose denominators sum to zero counts as a ratio of +infinity.
// Errors: bad_input for samples of different length, fewer than two items or 2^32 of them, a value that is not finite,
// a denominator mean that is not positive, or options out of range; the message has the value.
Result<Interval> ratio_of_means(std::span<const double> numerator, std::span<const double> denominator,
                                const BootstrapOptions& options);

}  // namespace kvasir::stats
