// How long a step takes: a linear model of its work, fitted online from measured steps.
//
//   seconds = fixed + decode_rows * a + prefill_rows * b + decode_keys * c + prefill_keys * d,   all five >= 0
//
// Keys of decode rows and of prompt rows are separate terms: a decode row reads its history for itself, while the rows
// of a chunk share one reading, so that a key costs them several times less.
//
// Thread rule: values; one owner. No clock: measured times are arguments, so a replay that feeds the same ones makes
// the same plans. No allocation. The fit: weighted least squares with forgetting, each step weighted by the inverse of
// its predicted time squared (what counts is the relative error), solved under the bound by projected coordinate
// descent with a fixed number of sweeps.
//   - A term is forgotten only by steps that have it: an hour of decoding forgets nothing about prompts.
//   - Damping towards the last estimate keeps what the steps cannot tell apart (a fixed part and a constant number of
//     rows) from drifting apart.
//   - One slow step (a frozen process, a page fault) counts as at most twice its prediction. A machine that has become
//     slower or faster shows as several steps in a row far off on one side: then every term is scaled by what they have
//     in common, the terms that those steps lack too, and the past counts for less.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir::sched {

// What a step computes. Keys: summed over its rows, the positions each attends to, its own included.
struct StepWork {
  std::uint32_t decode_rows = 0, prefill_rows = 0;
  std::uint64_t decode_keys = 0, prefill_keys = 0;

  // `rows` consecutive rows of one request from position `first` on.
  void add_decode(std::uint32_t first, std::uint32_t rows);
  void add_prefill(std::uint32_t first, std::uint32_t rows);
  std::uint32_t rows() const { return decode_rows + prefill_rows; }
  bool operator==(const StepWork&) const = default;
};

// Seconds: of every step, of each row and of each key.
struct CostCoefficients {
  double fixed = 0, decode_row = 0, prefill_row = 0, decode_key = 0, prefill_key = 0;

  double predict(const StepWork& work) const;
  bool operator==(const CostCoefficients&) const = default;
};

// Of a slow machine: what is assumed before there are measurements, so that the first chunks beside running streams are
// small rather than large.
inline constexpr CostCoefficients kCautiousCost = {
    .fixed = 20e-3, .decode_row = 2e-3, .prefill_row = 2e-3, .decode_key = 2e-6, .prefill_key = 0.5e-6};

class StepCost {
 public:
  explicit StepCost(const CostCoefficients& assumed = kCautiousCost);

  // A step of this work took `seconds`. Ignored unless it is finite and above 0 and the work has rows.
  void observe(const StepWork& work, double seconds);

  const CostCoefficients& coefficients() const { return coefficients_; }
  double predict(const StepWork& work) const { return coefficients_.predict(work); }
  std::uint64_t samples() const { return samples_; }

 private:
  static constexpr int kTerms = 5;
  using Vector = std::array<double, kTerms>;

  void forget(const Vector& sample);
  void solve();
  void watch_for_change(double ratio);
  void publish();

  // Everything is kept relative to the assumed coefficients: theta = coefficient / assumed, dimensionless.
  Vector assumed_{}, theta_{};
  std::array<Vector, kTerms> information_{};  // sum of weight * sample * sample^T
  Vector gradient_{};                         // sum of weight * sample * (measured - theta * sample), not yet solved
  CostCoefficients coefficients_;
  std::uint64_t samples_ = 0;
  int surprises_ = 0;            // steps in a row far above (> 0) or far below (< 0) their prediction
  double log_of_surprises_ = 0;  // sum of log(measured / predicted) over them
};

}  // namespace kvasir::sched
