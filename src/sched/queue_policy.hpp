// Who goes first: the order in which prompts are admitted and computed.
// Thread rule: pure; any thread.
//
//   fcfs      in order of arrival
//   priority  a lower value goes first, and waiting counts: every `ageing_us` that a request has waited is worth one
//             level. Two requests age at the same rate, so the order between them never changes: a request of priority
//             p stands where one of priority 0 would that arrived p * ageing_us later (earlier, if p < 0). So a request
//             is overtaken only by requests that arrive within (p - theirs) * ageing_us after it, which is the bound on
//             starvation; and equals keep their order of arrival.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace kvasir::sched {

enum class Policy : std::uint8_t { fcfs, priority };

std::string_view to_string(Policy policy);
// As written by people: "fcfs", "priority".
std::optional<Policy> parse_policy(std::string_view name);

// Valid priorities are -kMaxPriority to kMaxPriority: with ageing_us they bound how long anybody can be overtaken.
inline constexpr std::int32_t kMaxPriority = 1000;

struct QueuePolicy {
  Policy policy = Policy::fcfs;
  std::uint64_t ageing_us = 10'000'000;  // of waiting, worth one level of priority
};

// Errors: bad_input naming the key, its value and what would be valid.
Status validate(const QueuePolicy& policy);
Status validate_priority(std::int32_t priority);

// A request's place; the smaller goes first. Ids rise with arrival and decide between equals.
struct QueuePlace {
  std::int64_t virtual_arrival_us = 0;
  RequestId id;
  auto operator<=>(const QueuePlace&) const = default;
};

// REQUIRES: validate(policy).ok(), validate_priority(priority).ok().
QueuePlace place_of(const QueuePolicy& policy, RequestId id, std::int32_t priority, std::uint64_t arrived_us);

}  // namespace kvasir::sched
