#include "server/app/app_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "server/api/model_facts.hpp"

namespace kvasir::server {
namespace {

constexpr std::uint32_t kMaxApiThreads = 64;
constexpr std::array<std::string_view, 3> kProtectable = {"health", "metrics", "version"};

}  // namespace

Status validate(const AppConfig& config) {
  KV_TRY(validate(config.http));
  if (config.names.empty() || std::any_of(config.names.begin(), config.names.end(),
                                          [](const std::string& name) { return name.empty(); })) {
    return Error{ErrorCode::usage, "served-model-name is empty; valid: one name or more"};
  }
  if (config.api_threads < 1 || config.api_threads > kMaxApiThreads) {
    return Error{ErrorCode::usage,
                 fmt::format("api-threads is {}, valid: 1 to {}", config.api_threads, kMaxApiThreads)};
  }
  if (config.stream_interval < 1 || config.stream_interval > api::kMaxStreamInterval) {
    return Error{ErrorCode::usage,
                 fmt::format("stream-interval is {}, valid: 1 to {}", config.stream_interval, api::kMaxStreamInterval)};
  }
  if (config.loop.max_queued_requests == 0) {
    return Error{ErrorCode::usage, "max-num-queued-reqs is 0, valid: at least 1"};
  }
  for (const std::string& group : config.protected_routes) {
    if (std::find(kProtectable.begin(), kProtectable.end(), group) == kProtectable.end()) {
      return Error{ErrorCode::usage, fmt::format("protect is '{}', valid: health, metrics, version", group)};
    }
  }
  if (!config.protected_routes.empty() && config.keys.empty()) {
    return Error{ErrorCode::usage, "protect is given and no API key is; valid: together with api-key-file"};
  }
  return ok_status();
}

}  // namespace kvasir::server
