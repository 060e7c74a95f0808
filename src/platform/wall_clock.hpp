// The calendar's time, for people and protocols. It may jump: intervals are measured with platform/clock.hpp.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::platform {

// Milliseconds since 1970-01-01T00:00:00Z.
std::int64_t unix_ms();

// "2026-11-30T03:16:03.042Z". Source: RFC 3339.
std::string utc_timestamp(std::int64_t unix_milliseconds);

// "Mon, 30 Nov 2026 03:16:03 GMT". Source: RFC 9110 section 5.6.7.
std::string http_date(std::int64_t unix_milliseconds);

}  // namespace kvasir::platform
