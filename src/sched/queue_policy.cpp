#include "sched/queue_policy.hpp"

#include <fmt/format.h>

namespace kvasir::sched {
namespace {

constexpr std::uint64_t kMaxAgeingUs = 86'400'000'000;  // a day a level: far from where a place would overflow

}  // namespace

std::string_view to_string(Policy policy) {
  switch (policy) {
    case Policy::fcfs:
      return "fcfs";
    case Policy::priority:
      return "priority";
  }
  return "?";
}

std::optional<Policy> parse_policy(std::string_view name) {
  for (const Policy policy : {Policy::fcfs, Policy::priority})
    if (name == to_string(policy)) return policy;
  return std::nullopt;
}

Status validate(const QueuePolicy& policy) {
  if (policy.ageing_us == 0 || policy.ageing_us > kMaxAgeingUs)
    return Error{ErrorCode::bad_input,
                 fmt::format("ageing_us = {}; valid are 1 to {}", policy.ageing_us, kMaxAgeingUs)};
  return ok_status();
}

Status validate_priority(std::int32_t priority) {
  if (priority < -kMaxPriority || priority > kMaxPriority)
    return Error{ErrorCode::bad_input,
                 fmt::format("priority is {}, valid: {} to {}", priority, -kMaxPriority, kMaxPriority)};
  return ok_status();
}

QueuePlace place_of(const QueuePolicy& policy, RequestId id, std::int32_t priority, std::uint64_t arrived_us) {
  if (policy.policy == Policy::fcfs) return {0, id};
  return {static_cast<std::int64_t>(arrived_us) + priority * static_cast<std::int64_t>(policy.ageing_us), id};
}

}  // namespace kvasir::sched
