#include "sched/drain_rate.hpp"

#include <algorithm>
#include <cmath>

namespace kvasir::sched {

void DrainRate::observe(double seconds, std::uint64_t requests, std::uint64_t prompt_tokens) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  const double keep = std::exp(-seconds / kWindowS);
  requests_ = requests_ * keep + static_cast<double>(requests);
  prompt_tokens_ = prompt_tokens_ * keep + static_cast<double>(prompt_tokens);
  weight_s_ = weight_s_ * keep + kWindowS * (1 - keep);  // as if the step's seconds had faded too: no bias at the start
  busy_s_ += seconds;
}

std::uint32_t retry_after_s(std::uint64_t queued_prompt_tokens, const DrainRate& rate) {
  const double per_s = rate.prompt_tokens_per_s();
  const double wait = queued_prompt_tokens == 0 ? 0
                      : per_s > 0               ? static_cast<double>(queued_prompt_tokens) / per_s
                                                : rate.busy_s();
  return static_cast<std::uint32_t>(std::clamp(std::ceil(wait), double{kLeastRetryAfterS}, double{kMostRetryAfterS}));
}

}  // namespace kvasir::sched
