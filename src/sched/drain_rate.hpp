// How fast work leaves: requests and their prompt tokens that finish per second of computing. What a refused client is
// told to wait follows from it.
// Thread rule: values; one owner. No clock: the measured time of each step is an argument. No allocation.
#pragma once

#include <cstdint>

namespace kvasir::sched {

// A mean over the last kWindowS seconds or so in which steps ran. Idle time does not count: a server that had nothing
// to do was not slow.
class DrainRate {
 public:
  static constexpr double kWindowS = 30;

  // A step of `seconds` ended with so many requests complete, whose prompts had so many tokens.
  void observe(double seconds, std::uint64_t requests, std::uint64_t prompt_tokens);

  double requests_per_s() const { return per_s(requests_); }
  double prompt_tokens_per_s() const { return per_s(prompt_tokens_); }
  double busy_s() const { return busy_s_; }  // observed, in all

 private:
  double per_s(double sum) const { return weight_s_ > 0 ? sum / weight_s_ : 0; }

  double requests_ = 0, prompt_tokens_ = 0;  // fading sums
  double weight_s_ = 0;                      // seconds that they stand for, at most kWindowS
  double busy_s_ = 0;
};

inline constexpr std::uint32_t kLeastRetryAfterS = 1;
inline constexpr std::uint32_t kMostRetryAfterS = 120;  // clients give up on longer waits

// Whole seconds after which a refused request may try again: the time to drain what waits, at least 1 and at most 120.
// As long as nothing has finished, as long again as has been computed already.
std::uint32_t retry_after_s(std::uint64_t queued_prompt_tokens, const DrainRate& rate);

}  // namespace kvasir::sched
