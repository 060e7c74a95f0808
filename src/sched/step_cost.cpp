#include "sched/step_cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.hpp"

namespace kvasir::sched {
namespace {

constexpr double kMemory = 0.98;              // of what is known of a term, per step that has it: about 50 steps
constexpr double kAssumedInformation = 0.01;  // of the assumed coefficients: one measured step outweighs them
constexpr double kDamping = 0.02;             // towards the last estimate, as a share of what is known of a term
constexpr int kSweeps = 8;                    // unfinished descent is no loss: the rest stays in the gradient
constexpr double kLeastSeconds = 1e-6;        // below it nothing is relative to the prediction any more

constexpr double kMostSurprise = 2;     // a step counts as at most so many times its prediction
constexpr double kFarOff = 1.5;         // a surprise: off by more than this factor
constexpr int kSurprisesThatTell = 4;   // in a row, on one side: the machine has changed
constexpr double kMostChange = 16;      // of one such correction; a larger change takes several
constexpr double kKeptAtChange = 0.25;  // of what is known

// Positions that `rows` rows from `first` on attend to, added up: first + 1, ..., first + rows.
std::uint64_t keys_of(std::uint32_t first, std::uint32_t rows) {
  const std::uint64_t n = rows;
  return n * first + n * (n + 1) / 2;
}

}  // namespace

void StepWork::add_decode(std::uint32_t first, std::uint32_t rows) {
  decode_rows += rows;
  decode_keys += keys_of(first, rows);
}

void StepWork::add_prefill(std::uint32_t first, std::uint32_t rows) {
  prefill_rows += rows;
  prefill_keys += keys_of(first, rows);
}

double CostCoefficients::predict(const StepWork& work) const {
  return fixed + decode_row * work.decode_rows + prefill_row * work.prefill_rows +
         decode_key * static_cast<double>(work.decode_keys) + prefill_key * static_cast<double>(work.prefill_keys);
}

StepCost::StepCost(const CostCoefficients& assumed)
    : assumed_{assumed.fixed, assumed.decode_row, assumed.prefill_row, assumed.decode_key, assumed.prefill_key},
      coefficients_(assumed) {
  for (int i = 0; i < kTerms; ++i) {
    KV_CHECK(assumed_[i] > 0, "an assumed cost is the unit of its term");
    theta_[i] = 1;
    information_[i][i] = kAssumedInformation;
  }
}

void StepCost::observe(const StepWork& work, double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0 || work.rows() == 0) return;
  watch_for_change(seconds / std::max(predict(work), kLeastSeconds));
  const double predicted = std::max(predict(work), kLeastSeconds);
  const double ratio = std::min(seconds / predicted, kMostSurprise);
  // The step in units of its prediction: theta * sample is 1 where the prediction is right.
  Vector sample = {1, static_cast<double>(work.decode_rows), static_cast<double>(work.prefill_rows),
                   static_cast<double>(work.decode_keys), static_cast<double>(work.prefill_keys)};
  for (int i = 0; i < kTerms; ++i) sample[i] *= assumed_[i] / predicted;

  forget(sample);
  double expected = 0;
  for (int i = 0; i < kTerms; ++i) expected += theta_[i] * sample[i];
  for (int i = 0; i < kTerms; ++i) {
    gradient_[i] += sample[i] * (ratio - expected);
    for (int j = 0; j < kTerms; ++j) information_[i][j] += sample[i] * sample[j];
  }
  solve();
  ++samples_;
}

void StepCost::forget(const Vector& sample) {
  // D * information * D with D = sqrt(kMemory) for terms that the step has, 1 for the others: stays positive definite.
  Vector keep{};
  for (int i = 0; i < kTerms; ++i) keep[i] = sample[i] > 0 ? std::sqrt(kMemory) : 1;
  for (int i = 0; i < kTerms; ++i) {
    gradient_[i] *= keep[i] * keep[i];
    for (int j = 0; j < kTerms; ++j) information_[i][j] *= keep[i] * keep[j];
  }
}

void StepCost::watch_for_change(double ratio) {
  const int side = ratio > kFarOff ? 1 : ratio < 1 / kFarOff ? -1 : 0;
  if (side == 0 || side * surprises_ < 0) surprises_ = 0, log_of_surprises_ = 0;
  if (side == 0) return;
  surprises_ += side;
  log_of_surprises_ += std::log(std::clamp(ratio, 1 / kMostChange, kMostChange));
  if (std::abs(surprises_) < kSurprisesThatTell) return;
  // Steps are weighted by their predicted time: with predictions times `change`, samples are divided by it.
  const double change = std::exp(log_of_surprises_ / kSurprisesThatTell);
  for (int i = 0; i < kTerms; ++i) {
    theta_[i] *= change;
    gradient_[i] *= kKeptAtChange / change;
    for (double& value : information_[i]) value *= kKeptAtChange / (change * change);
  }
  surprises_ = 0;
  log_of_surprises_ = 0;
  publish();
}

// Moves theta along the gradient, damped, never below 0; what is left of the gradient is kept.
void StepCost::solve() {
  Vector move{};
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int i = 0; i < kTerms; ++i) {
      double slope = gradient_[i] - kDamping * information_[i][i] * move[i];
      for (int j = 0; j < kTerms; ++j) slope -= information_[i][j] * move[j];
      move[i] = std::max(move[i] + slope / ((1 + kDamping) * information_[i][i]), -theta_[i]);
    }
  }
  for (int i = 0; i < kTerms; ++i) {
    theta_[i] = std::max(theta_[i] + move[i], 0.0);
    for (int j = 0; j < kTerms; ++j) gradient_[i] -= information_[i][j] * move[j];
  }
  publish();
}

void StepCost::publish() {
  coefficients_ = {theta_[0] * assumed_[0], theta_[1] * assumed_[1], theta_[2] * assumed_[2], theta_[3] * assumed_[3],
                   theta_[4] * assumed_[4]};
}

}  // namespace kvasir::sched
