// When requests come: all times are drawn before the run begins, so a slow server cannot slow them down.
// As `vllm bench serve`: gaps follow a gamma distribution of mean 1 / rate whose shape is the burstiness (1:
// exponential, that is a Poisson process; below 1: bursts; infinity: constant gaps), and all times are scaled so that
// the last request comes at count / rate: the offered rate is exact, whatever the seed. Pure functions, any thread; the
// same options give the same times on every machine. Source: Marsaglia and Tsang, A simple method for generating gamma
// variables, ACM TOMS 26(3), 2000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/prng.hpp"

namespace kvasir::load {

struct ArrivalOptions {
  double rate_per_s = std::numeric_limits<double>::infinity();  // > 0; infinity: all at once
  double burstiness = 1;                                        // > 0
  std::uint64_t seed = 0;
};

// Seconds since the start, ascending.
std::vector<double> draw_arrivals(std::size_t count, const ArrivalOptions& options);

// A gamma variable of that shape (> 0) and mean 1.
double draw_gamma(double shape, PhiloxSequence& draws);

}  // namespace kvasir::load
