#include "stats/quantile_interval.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "base/prng.hpp"
#include "stats/quantile.hpp"

namespace kvasir::stats {
namespace {

Error bad(std::string message) { return {ErrorCode::bad_input, std::move(message)}; }

struct Value {
  double value = 0;
  std::uint32_t cluster = 0;  // among those that hold anything
};

// The sample in ascending order, each value with its cluster.
struct Sample {
  std::vector<Value> ascending;
  std::vector<std::uint32_t> sizes;  // of the clusters that hold anything
};

Sample sorted_sample(std::span<const double> values, std::span<const std::uint32_t> cluster_sizes) {
  Sample sample;
  sample.ascending.reserve(values.size());
  std::size_t at = 0;
  for (const std::uint32_t size : cluster_sizes) {
    if (size == 0) continue;
    for (std::uint32_t i = 0; i < size; ++i)
      sample.ascending.push_back({values[at++], static_cast<std::uint32_t>(sample.sizes.size())});
    sample.sizes.push_back(size);
  }
  std::ranges::sort(sample.ascending, {}, &Value::value);
  return sample;
}

// Quantiles of the sample with each value as often as its cluster was drawn. wanted: (probability, slot) ascending.
void weighted_quantiles(const Sample& sample, std::span<const std::uint32_t> drawn, std::uint64_t total,
                        std::span<const std::pair<double, std::size_t>> wanted, std::span<double> quantiles) {
  std::size_t at = 0;
  std::uint64_t through = drawn[sample.ascending[0].cluster];  // values at or before `at`, with repetition
  const auto value_at = [&](std::uint64_t rank) {
    while (through <= rank) through += drawn[sample.ascending[++at].cluster];
    return sample.ascending[at].value;
  };
  for (const auto& [probability, slot] : wanted) {
    const double place = probability * static_cast<double>(total - 1);
    const auto below = static_cast<std::uint64_t>(place);
    const double low = value_at(below);
    const std::size_t kept_at = at;
    const std::uint64_t kept_through = through;
    const double high = value_at(std::min(below + 1, total - 1));
    at = kept_at, through = kept_through;  // the next probability may begin at the same rank
    quantiles[slot] = low + (place - static_cast<double>(below)) * (high - low);
  }
}

Status check(std::span<const double> values, std::span<const std::uint32_t> cluster_sizes,
             std::span<const double> probabilities, const BootstrapOptions& options) {
  if (values.empty()) return bad("a quantile needs at least one value");
  if (cluster_sizes.size() >= std::numeric_limits<std::uint32_t>::max())
    return bad("too many clusters: " + std::to_string(cluster_sizes.size()));
  std::uint64_t sum = 0;
  for (const std::uint32_t size : cluster_sizes) sum += size;
  if (sum != values.size())
    return bad("cluster sizes sum to " + std::to_string(sum) + ", but there are " + std::to_string(values.size()) +
               " values");
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); }))
    return bad("a sample holds a value that is not finite");
  for (const double probability : probabilities) {
    if (!(probability >= 0 && probability <= 1))
      return bad("a probability must lie in [0, 1], got " + std::to_string(probability));
  }
  if (options.resamples < 2) return bad("resamples must be at least 2, got " + std::to_string(options.resamples));
  if (!(options.confidence > 0 && options.confidence < 1))
    return bad("confidence must lie between 0 and 1, got " + std::to_string(options.confidence));
  return ok_status();
}

}  // namespace

Result<std::vector<Interval>> quantile_intervals(std::span<const double> values,
                                                 std::span<const std::uint32_t> cluster_sizes,
                                                 std::span<const double> probabilities,
                                                 const BootstrapOptions& options) {
  KV_TRY(check(values, cluster_sizes, probabilities, options));
  const Sample sample = sorted_sample(values, cluster_sizes);
  std::vector<std::pair<double, std::size_t>> wanted;
  for (std::size_t i = 0; i < probabilities.size(); ++i) wanted.emplace_back(probabilities[i], i);
  std::ranges::sort(wanted);

  const std::size_t clusters = sample.sizes.size();
  std::vector<std::uint32_t> drawn(clusters, 1);
  std::vector<double> quantiles(probabilities.size());
  weighted_quantiles(sample, drawn, values.size(), wanted, quantiles);
  std::vector<Interval> intervals(probabilities.size());
  for (std::size_t i = 0; i < intervals.size(); ++i) intervals[i].estimate = quantiles[i];

  PhiloxSequence draws(options.seed, 0);
  std::vector<std::vector<double>> resampled(probabilities.size(), std::vector<double>(options.resamples));
  for (std::uint32_t resample = 0; resample < options.resamples; ++resample) {
    std::ranges::fill(drawn, 0u);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < clusters; ++i) {
      const std::uint32_t cluster = draws.below(static_cast<std::uint32_t>(clusters));
      ++drawn[cluster];
      total += sample.sizes[cluster];
    }
    weighted_quantiles(sample, drawn, total, wanted, quantiles);
    for (std::size_t i = 0; i < quantiles.size(); ++i) resampled[i][resample] = quantiles[i];
  }
  const double tail = (1 - options.confidence) / 2;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    std::ranges::sort(resampled[i]);
    intervals[i].low = quantile(resampled[i], tail);
    intervals[i].high = quantile(resampled[i], 1 - tail);
  }
  return intervals;
}

}  // namespace kvasir::stats
