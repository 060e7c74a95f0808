#include "base/fixed_math.hpp"

#include "base/check.hpp"

namespace kvasir {
namespace {

constexpr double kLn2High = 0x1.62e42fefa0000p-1;   // 33 bits: n * kLn2High is exact for |n| < 2^19
constexpr double kLn2Low = 0x1.cf79abc9e3b39p-40;

double round_even(double x) {
  constexpr double kShift = 0x1.8p52;
  return (x + kShift) - kShift;
}

}  // namespace

double log_f64(double x) {
  KV_CHECK(x > 0 && x < 0x1p1023, "log_f64 takes a positive finite number");
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);   // [1, 2)
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s) = 2 (s + s^3/3 + ...), |s| < 0.1716: eleven terms reach double precision.
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = std::fma(series, s2, 1.0 / k);
  const double log_m = std::fma(2 * s * s2, series, 2 * s);
  return std::fma(exponent, kLn2High, std::fma(exponent, kLn2Low, log_m));
}

double exp_f64(double x) {
  KV_CHECK(x > -700 && x < 700, "exp_f64 takes |x| < 700");
  const double n = round_even(x * 0x1.71547652b82fep0);
  const double r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  double p = 1;
  for (int k = 14; k >= 1; --k) p = std::fma(p * r, 1.0 / k, 1.0);
  const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(n)) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + exponent);
}

SinCos sincos_f64(double x) {
  KV_CHECK(x > -0x1p30 && x < 0x1p30, "sincos_f64 takes |x| < 2^30");
  // x = q * pi/2 + r with pi/2 in three parts (Cody and Waite).
  const double q = round_even(x * 0x1.45f306dc9c883p-1);
  double r = std::fma(q, -0x1.921fb54400000p0, x);
  r = std::fma(q, -0x1.0b4611a600000p-34, r);
  r = std::fma(q, -0x1.3198a2e037073p-69, r);
  const double r2 = r * r;
  double s = 0, c = 0;   // Taylor, |r| <= pi/4
  for (int k = 17; k >= 3; k -= 2) s = (1 + s) * (-r2 / (k * (k - 1)));
  for (int k = 18; k >= 2; k -= 2) c = (1 + c) * (-r2 / (k * (k - 1)));
  const double sine = std::fma(r, s, r);
  const double cosine = 1 + c;
  switch (static_cast<std::int64_t>(q) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace kvasir
