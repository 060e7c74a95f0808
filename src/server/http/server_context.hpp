// What the parts of one HTTP server share: its limits, its handler, its counts.
// Thread rule: config and handler never change; the rest is atomic. Counts are independent of each other: relaxed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "server/http/http_config.hpp"
#include "server/http/http_server.hpp"

namespace kvasir::server {

struct ServerContext {
  ServerContext(HttpConfig config_in, HttpHandler& handler_in) : config(std::move(config_in)), handler(handler_in) {}

  using Count = std::atomic<std::uint64_t>;
  static void add(Count& count, std::uint64_t by = 1) { count.fetch_add(by, std::memory_order_relaxed); }
  static void take(Count& count, std::uint64_t by = 1) { count.fetch_sub(by, std::memory_order_relaxed); }

  void warn(const std::string& message) const {
    if (config.on_warning) config.on_warning(message);
  }
  HttpStats stats() const;

  const HttpConfig config;
  HttpHandler& handler;
  std::atomic<bool> draining{false};

  Count buffered_bytes{0};   // of requests that are being read
  // Sequentially consistent: the loops end when it is 0 and nothing is accepted any more.
  Count open_connections{0};
  Count active_requests{0}, accepted{0}, refused_connections{0}, accept_failures{0}, requests{0}, bad_requests{0};
  Count screened{0}, lost{0}, dropped_slow{0}, received_bytes{0}, sent_bytes{0}, writes{0};
};

}  // namespace kvasir::server
