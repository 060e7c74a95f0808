#include "load/arrivals.hpp"

#include <cmath>

#include "base/check.hpp"
#include "base/fixed_math.hpp"

namespace kvasir::load {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// In (0, 1): never 0, so a logarithm exists.
double open_uniform(PhiloxSequence& draws) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(draws.next()) << 20) ^ draws.next();  // 52 bits
  return (static_cast<double>(bits & ((std::uint64_t{1} << 52) - 1)) + 0.5) * 0x1p-52;
}

double draw_normal(PhiloxSequence& draws) {
  const double radius = std::sqrt(-2 * log_f64(open_uniform(draws)));
  return radius * sincos_f64(kTwoPi * open_uniform(draws)).cos;
}

// Of scale 1, for a shape of at least 1.
double draw_gamma_from_one(double shape, PhiloxSequence& draws) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draw_normal(draws), cube_root = 1 + c * x;
    if (cube_root <= 0) continue;
    const double v = cube_root * cube_root * cube_root;
    if (log_f64(open_uniform(draws)) < 0.5 * x * x + d - d * v + d * log_f64(v)) return d * v;
  }
}

}  // namespace

double draw_gamma(double shape, PhiloxSequence& draws) {
  KV_CHECK(shape > 0, "a gamma distribution has a positive shape");
  if (std::isinf(shape)) return 1;
  if (shape == 1) return -log_f64(open_uniform(draws));
  if (shape > 1) return draw_gamma_from_one(shape, draws) / shape;
  const double power = log_f64(open_uniform(draws)) / shape;  // a power of a uniform takes shape + 1 down to shape
  return power < -700 ? 0 : draw_gamma_from_one(shape + 1, draws) * exp_f64(power) / shape;
}

std::vector<double> draw_arrivals(std::size_t count, const ArrivalOptions& options) {
  KV_CHECK(options.rate_per_s > 0, "a request rate is positive");
  std::vector<double> times(count, 0.0);
  if (std::isinf(options.rate_per_s) || count == 0) return times;
  PhiloxSequence draws(options.seed, 0x61727269);  // a stream of its own
  double now = 0;
  for (double& time : times) time = now += draw_gamma(options.burstiness, draws);
  const double scale = now > 0 ? static_cast<double>(count) / options.rate_per_s / now : 0;
  for (double& time : times) time *= scale;
  return times;
}

}  // namespace kvasir::load
