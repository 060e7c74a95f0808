// Bootstrap confidence intervals of quantiles when values come in clusters: the token gaps of one request resemble each
// other, so requests are resampled, not gaps. Values that stand alone are clusters of one.
// Deterministic: the same samples and options give the same intervals on every machine.
//
// Pure functions, any thread.
// Source: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8 (cluster resampling).
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "stats/bootstrap.hpp"

namespace kvasir::stats {

// One interval for each probability, in their order. values: all clusters' values, one cluster after the other;
// cluster_sizes: how many values each has (0 is allowed and changes nothing).
// options.block is not used. Work: resamples x values.
// Errors: bad_input for no values, sizes that do not add up to the number of values, 2^32 clusters, a value that is not
// finite, a probability outside [0, 1], or options out of range; the message has the value.
Result<std::vector<Interval>> quantile_intervals(std::span<const double> values,
                                                 std::span<const std::uint32_t> cluster_sizes,
                                                 std::span<const double> probabilities,
                                                 const BootstrapOptions& options);

}  // namespace kvasir::stats
