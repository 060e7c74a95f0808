// A simulated machine: how long it takes over a step's work, with noise and now and then a step that takes far longer.
// Seeded: the same steps take the same times.
#pragma once

#include "base/prng.hpp"
#include "sched/step_cost.hpp"

namespace kvasir::sched::test {

struct Machine {
  CostCoefficients cost;
  float noise = 0;          // a time is the cost times 1 - noise to 1 + noise
  float outlier_share = 0;  // of the steps
  double outlier_factor = 1;

  double seconds(const StepWork& work, PhiloxSequence& random) const {
    const double time = cost.predict(work) * (1 + noise * (2 * random.uniform() - 1));
    return random.uniform() < outlier_share ? time * outlier_factor : time;
  }
};

// About a model of 135 million parameters, 4 bits, on two cores.
inline constexpr CostCoefficients kSmallModel = {
    .fixed = 7e-3, .decode_row = 1.1e-3, .prefill_row = 0.6e-3, .decode_key = 1.5e-6, .prefill_key = 0.15e-6};

}  // namespace kvasir::sched::test
