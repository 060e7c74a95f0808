// Why a request is not taken: a reason that code can act on, and both numbers. A plain value: asking costs no heap.
// Thread rule: a value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "cache/claims.hpp"

namespace kvasir::core {

enum class RefusalReason : std::uint8_t {
  none,            // it is taken
  bad_request,     // malformed: the message says what
  context_length,  // more tokens than a sequence may ever have
  never_fits,      // more blocks than the cache can ever offer
  queue_requests,  // as many requests wait as may
  queue_tokens,    // as many prompt tokens wait as may
  known_requests,  // as many requests are known as there are records for
  memory,          // the system has no memory behind the claim now
};
inline constexpr std::size_t kRefusalReasons = 8;

std::string_view to_string(RefusalReason reason);
// Waiting is of no use: the same request will always be refused.
constexpr bool is_permanent(RefusalReason reason) {
  return reason == RefusalReason::bad_request || reason == RefusalReason::context_length ||
         reason == RefusalReason::never_fits;
}

// Refusals since the start, by reason.
struct RefusalCounts {
  std::array<std::uint64_t, kRefusalReasons> by_reason{};

  void add(RefusalReason reason) { ++by_reason[static_cast<std::size_t>(reason)]; }
  std::uint64_t of(RefusalReason reason) const { return by_reason[static_cast<std::size_t>(reason)]; }
  std::uint64_t total() const;
};

struct SubmitVerdict {
  RefusalReason reason = RefusalReason::none;
  std::uint64_t wanted = 0;  // context_length: rows; never_fits: blocks; queue_tokens: tokens; else requests
  std::uint64_t have = 0;    // the same unit: what is allowed
  cache::FitVerdict fit;     // with context_length, never_fits

  bool ok() const { return reason == RefusalReason::none; }
};

// For people: names the limit and both numbers. Code does_not_fit, or exhausted where waiting helps.
// REQUIRES: not ok() and not bad_request or memory, whose errors say more than two numbers do.
Error to_error(const SubmitVerdict& verdict);

}  // namespace kvasir::core
