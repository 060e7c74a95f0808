#include "stats/quantile.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace kvasir::stats {

double quantile(std::span<const double> ascending, double probability) {
  KV_CHECK(!ascending.empty(), "a quantile needs a sample");
  KV_CHECK(probability >= 0 && probability <= 1, "a probability lies in [0, 1]");
  const double place = probability * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  if (ascending[below] == ascending[above]) return ascending[below];  // both may be infinite
  return ascending[below] + (place - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

Moments moments(std::span<const double> values) {
  Moments result{values.size()};
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value;
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / count);
  return result;
}

}  // namespace kvasir::stats
