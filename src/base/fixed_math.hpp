// Elementary functions whose bits do not depend on the machine. libm's exp, log, pow and sin differ between versions and
// processors; everything on the way to a logit or a sampled token goes through these instead. Only +, -, *, /, sqrt,
// std::fma and integer operations are used, so every IEEE machine gives the same bits.
//
// Pure functions, any thread. REQUIRES the default rounding mode and no flush-to-zero.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kvasir {

// Constants of exp_f32, shared with the vector kernels, which run the same operations on 16 lanes.
namespace exp_constants {
inline constexpr float kLowest = -87.0f;   // below: exactly 0 (a denormal would be slow, and no weight needs it)
inline constexpr float kHighest = 88.0f;   // above: taken as 88
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e4p-1f;      // 15 bits: n * kLn2High is exact for |n| < 2^9
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kRound = 0x1.8p23f;           // adding and subtracting it rounds to nearest even
// Taylor to degree 6 with the x^7 term folded into c3 and c5 by its Chebyshev expansion on [-ln2/2, ln2/2].
inline constexpr float kC2 = 0x1p-1f, kC3 = 0x1.555406p-3f, kC4 = 0x1.555556p-5f, kC5 = 0x1.126eecp-7f, kC6 = 0x1.6c16c2p-10f;
}  // namespace exp_constants

// e^x within 1 ulp for x in [-87, 88]; 0 for x < -87 (and for NaN: a comparison selects it); e^88 above 88.
inline float exp_f32(float x) {
  using namespace exp_constants;
  if (!(x >= kLowest)) return 0.0f;
  x = x < kHighest ? x : kHighest;
  const float shifted = std::fma(x, kLog2E, kRound);
  const float n = shifted - kRound;
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float p = std::fma(kC6, r, kC5);
  p = std::fma(p, r, kC4);
  p = std::fma(p, r, kC3);
  p = std::fma(p, r, kC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;   // low bits of `shifted` are n
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
}

// Natural logarithm of a positive finite double, within 2 ulp.
double log_f64(double x);
// e^x in double for |x| < 700, within 2 ulp.
double exp_f64(double x);
// base^exponent for base > 0.
inline double pow_f64(double base, double exponent) { return exp_f64(exponent * log_f64(base)); }

struct SinCos {
  double sin = 0, cos = 1;
};
// Sine and cosine of x radians for |x| < 2^30, within 1e-15 absolute for |x| < 2^20.
SinCos sincos_f64(double x);

}  // namespace kvasir
