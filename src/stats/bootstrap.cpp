#include "stats/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "stats/quantile.hpp"

namespace kvasir::stats {
namespace {

Error bad(std::string message) { return {ErrorCode::bad_input, std::move(message)}; }

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::infinity();
}

// One resample: as many items as there are, in circular blocks.
double resampled_ratio(std::span<const double> numerator, std::span<const double> denominator, std::size_t block,
                       PhiloxSequence& draws) {
  const std::size_t items = numerator.size();
  double numerator_sum = 0;
  double denominator_sum = 0;
  for (std::size_t taken = 0; taken < items;) {
    std::size_t item = draws.below(static_cast<std::uint32_t>(items));
    const std::size_t end = std::min(taken + block, items);
    for (; taken < end; ++taken) {
      numerator_sum += numerator[item];
      denominator_sum += denominator[item];
      item = item + 1 == items ? 0 : item + 1;
    }
  }
  return ratio(numerator_sum, denominator_sum);
}

Status check(std::span<const double> numerator, std::span<const double> denominator, const BootstrapOptions& options) {
  if (numerator.size() != denominator.size()) {
    return bad("paired samples differ in length: " + std::to_string(numerator.size()) + " and " +
               std::to_string(denominator.size()));
  }
  if (numerator.size() < 2) return bad("a bootstrap needs at least two items, got " + std::to_string(numerator.size()));
  if (numerator.size() > std::numeric_limits<std::uint32_t>::max()) {
    return bad("a bootstrap takes at most 4294967295 items, got " + std::to_string(numerator.size()));
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::ranges::all_of(numerator, finite) || !std::ranges::all_of(denominator, finite)) {
    return bad("a sample holds a value that is not finite");
  }
  if (options.resamples < 2) return bad("resamples must be at least 2, got " + std::to_string(options.resamples));
  if (!(options.confidence > 0 && options.confidence < 1)) {
    return bad("confidence must lie between 0 and 1, got " + std::to_string(options.confidence));
  }
  if (options.block == 0 || options.block > numerator.size()) {
    return bad("block must be 1 to the number of items, " + std::to_string(numerator.size()) + ", got " +
               std::to_string(options.block));
  }
  return ok_status();
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

Result<Interval> ratio_of_means(std::span<const double> numerator, std::span<const double> denominator,
                                const BootstrapOptions& options) {
  KV_TRY(check(numerator, denominator, options));
  const double denominator_sum = sum_of(denominator);
  if (!(denominator_sum > 0)) {
    return bad("the denominator's mean must be positive, its sum is " + std::to_string(denominator_sum));
  }

  PhiloxSequence draws(options.seed, 0);
  std::vector<double> ratios(options.resamples);
  for (double& value : ratios) value = resampled_ratio(numerator, denominator, options.block, draws);
  std::ranges::sort(ratios);
  const double tail = (1 - options.confidence) / 2;
  return Interval{sum_of(numerator) / denominator_sum, quantile(ratios, tail), quantile(ratios, 1 - tail)};
}

}  // namespace kvasir::stats
