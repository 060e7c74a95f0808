// Everything that decides how `kvasir serve` behaves, but for the model and the engine (served_model.hpp).
// Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "server/engine_loop.hpp"
#include "server/http/access.hpp"
#include "server/http/http_config.hpp"
#include "server/log.hpp"

namespace kvasir::server {

struct AppConfig {
  HttpConfig http;  // on_access, on_signal and on_warning are the app's
  // SIGINT and SIGTERM drain, the second one ends. Off in tests, which send no signals to themselves.
  bool handle_signals = true;

  KeyRing keys;                           // none: no key is asked for
  bool admin_over_unix_socket = false;    // --admin-over-unix-socket
  std::vector<std::string> cors_origins;  // --cors-origin
  // Groups of routes that need a key although they tell no more than that the server is there: "health", "metrics",
  // "version".
  std::vector<std::string> protected_routes;  // --protect

  EngineLoopConfig loop;                   // on_step is called after the app's own
  std::vector<std::string> names;          // --served-model-name; at least one
  std::uint32_t default_max_tokens = 0;    // of a request without a limit; 0 = what context and cache leave
  std::uint32_t max_requests_per_key = 0;  // --max-requests-per-key: at once, of one tenant; 0 = no limit
  std::uint32_t stream_interval = 1;       // --stream-interval: tokens of a stream's chunk
  bool priority_scheduling = false;
  bool strict = false;                  // fields without effect are refused
  bool trust_request_template = false;  // chat_template of a request is rendered

  // Threads that parse, tokenize and write whole answers, and what may wait for them.
  std::uint32_t api_threads = 2;
  std::uint32_t max_waiting_bodies = 1024;
  std::uint64_t max_waiting_body_bytes = 256 << 20;

  std::uint64_t drain_timeout_ms = 30'000;     // --drain-timeout: streams' time after the first signal
  std::uint64_t liveness_timeout_ms = 60'000;  // the engine loop's heartbeat is stale after this

  std::string version;  // of the program
  LogFormat log_format = LogFormat::text;
  LogLevel log_level = LogLevel::info;
  Logger::Sink log_sink;  // none: stderr
};

// Errors: usage, naming the key, its value and the range; those of the HTTP server's configuration.
Status validate(const AppConfig& config);

}  // namespace kvasir::server
