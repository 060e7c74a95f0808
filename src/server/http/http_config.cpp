#include "server/http/http_config.hpp"

#include <fmt/format.h>

namespace kvasir::server {
namespace {

struct Range {
  const char* key;
  std::uint64_t value, min, max;
};

}  // namespace

Status validate(const HttpConfig& config) {
  if (config.host.empty() && config.unix_socket.empty()) {
    return Error{ErrorCode::usage, "host and unix_socket are both empty: one of them must say where to listen"};
  }
  constexpr std::uint64_t kHour = 3'600'000;
  constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;
  for (const Range& range : {
           Range{"io_threads", config.io_threads, 1, 64},
           Range{"max_connections", config.max_connections, 1, 1'000'000},
           Range{"max_header_bytes", config.max_header_bytes, 256, 1 << 20},
           Range{"max_header_count", config.max_header_count, 1, 10'000},
           Range{"max_body_bytes", config.max_body_bytes, 1, kTiB},
           Range{"max_buffered_bytes", config.max_buffered_bytes, 1, kTiB},
           Range{"max_pipelined_bytes", config.max_pipelined_bytes, 0, 1 << 30},
           Range{"max_queued_bytes", config.max_queued_bytes, 1024, kTiB},
           Range{"idle_timeout_ms", config.idle_timeout_ms, 1, kHour * 24},
           Range{"header_timeout_ms", config.header_timeout_ms, 1, kHour},
           Range{"body_timeout_ms", config.body_timeout_ms, 1, kHour},
           Range{"write_stall_ms", config.write_stall_ms, 1, kHour},
           Range{"ping_interval_ms", config.ping_interval_ms, 0, kHour},
       }) {
    if (range.value < range.min || range.value > range.max) {
      return Error{ErrorCode::usage,
                   fmt::format("{} is {}; it must be from {} to {}", range.key, range.value, range.min, range.max)};
    }
  }
  return ok_status();
}

}  // namespace kvasir::server
