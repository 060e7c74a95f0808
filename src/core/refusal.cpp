#include "core/refusal.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/check.hpp"

namespace kvasir::core {

std::string_view to_string(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::none:
      return "none";
    case RefusalReason::bad_request:
      return "bad_request";
    case RefusalReason::context_length:
      return "context_length";
    case RefusalReason::never_fits:
      return "never_fits";
    case RefusalReason::queue_requests:
      return "queue_requests";
    case RefusalReason::queue_tokens:
      return "queue_tokens";
    case RefusalReason::known_requests:
      return "known_requests";
    case RefusalReason::memory:
      return "memory";
  }
  return "?";
}

std::uint64_t RefusalCounts::total() const {
  return std::accumulate(by_reason.begin(), by_reason.end(), std::uint64_t{0});
}

Error to_error(const SubmitVerdict& verdict) {
  switch (verdict.reason) {
    case RefusalReason::context_length:
    case RefusalReason::never_fits:
      return cache::to_error(verdict.fit);
    case RefusalReason::queue_requests:
      return {ErrorCode::exhausted, fmt::format("with this request {} would wait, and max_queued_requests = {}",
                                                verdict.wanted, verdict.have)};
    case RefusalReason::queue_tokens:
      return {ErrorCode::exhausted,
              fmt::format("with this request {} prompt tokens would wait, and max_queued_tokens = {}", verdict.wanted,
                          verdict.have)};
    case RefusalReason::known_requests:
      return {ErrorCode::exhausted,
              fmt::format("with this request {} would be known, and max_requests = {}", verdict.wanted, verdict.have)};
    case RefusalReason::none:
    case RefusalReason::bad_request:
    case RefusalReason::memory:
      break;
  }
  KV_CHECK(false, "a refusal by numbers");
  return {};
}

}  // namespace kvasir::core
