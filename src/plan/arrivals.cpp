// When the sequences of a mix begin: as recorded, or drawn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/fixed_math.hpp"
#include "base/prng.hpp"
#include "plan/occupancy.hpp"
#include "plan/weighted_draw.hpp"

namespace kvasir::plan {
namespace {

constexpr double kLeastArrivals = 5'000, kLeastStays = 20;  // of what is counted
constexpr std::uint64_t kStream = 0x6f636375;

// Of mean 1.
double draw_exponential(PhiloxSequence& draws) { return -log_f64((static_cast<double>(draws.next()) + 0.5) * 0x1p-32); }

}  // namespace

Result<ArrivalPlan> recorded_arrivals(const LengthMix& mix) {
  KV_CHECK(mix.apart && mix.arrivals_s.size() == mix.lengths.size(), "each sequence has an arrival");
  ArrivalPlan out;
  out.arrivals.reserve(mix.lengths.size());
  for (std::size_t i = 0; i < mix.lengths.size(); ++i) out.arrivals.push_back({mix.arrivals_s[i], mix.lengths[i]});
  out.from_s = mix.arrivals_s.front();
  out.to_s = mix.arrivals_s.back();
  if (out.to_s > out.from_s) return out;
  return Error{ErrorCode::bad_input,
               "all of the trace's requests arrive at one moment; valid: arrivals over some time, or a rate"};
}

Result<ArrivalPlan> poisson_arrivals(const LengthMix& mix, double rate_per_s, const ServiceModel& service,
                                     std::uint64_t seed) {
  KV_CHECK(mix.apart && rate_per_s > 0, "there is a time that sequences stay, and a rate");
  double longest_s = 0, mean_s = 0;
  std::vector<double> weights;
  weights.reserve(mix.lengths.size());
  for (const SequenceLength& one : mix.lengths) {
    const double stay = service.residence_s(one);
    if (one.weight > 0) longest_s = std::max(longest_s, stay);
    mean_s += one.weight * stay;
    weights.push_back(one.weight);
  }
  mean_s /= mix.weight();
  const double counted_s = std::max(kLeastArrivals / rate_per_s, kLeastStays * mean_s), end_s = longest_s + counted_s;
  if (!(end_s * rate_per_s <= static_cast<double>(kMaxArrivals) / 2)) {
    return Error{ErrorCode::bad_input,
                 fmt::format("{:g} requests a second for {:.3g} s until the longest stay has passed and {:.3g} s "
                             "counted, valid: at most {:.3g} a second",
                             rate_per_s, longest_s, counted_s, static_cast<double>(kMaxArrivals) / 2 / end_s)};
  }
  ArrivalPlan out;
  out.from_s = longest_s;
  out.to_s = end_s;
  const WeightedDraw lengths(weights);
  PhiloxSequence draws(seed, kStream);
  for (double now = draw_exponential(draws) / rate_per_s; now < end_s; now += draw_exponential(draws) / rate_per_s) {
    out.arrivals.push_back({now, mix.lengths[lengths.draw(draws)]});
  }
  return out;
}

}  // namespace kvasir::plan
