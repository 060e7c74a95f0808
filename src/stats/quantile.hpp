// Quantiles and moments of samples, as NumPy counts them, so that numbers stand beside those of Python tools.
// Pure functions, any thread.
// Source: Hyndman and Fan, Sample quantiles in statistical packages, 1996 (type 7).
#pragma once

#include <cstddef>
#include <span>

namespace kvasir::stats {

// The value at probability p of an ascending sample, linear between order statistics.
// REQUIRES: not empty, ascending, 0 <= probability <= 1.
double quantile(std::span<const double> ascending, double probability);

struct Moments {
  std::size_t count = 0;
  double mean = 0;       // 0 of nothing
  double deviation = 0;  // of the population (divided by count)
};
Moments moments(std::span<const double> values);

}  // namespace kvasir::stats
