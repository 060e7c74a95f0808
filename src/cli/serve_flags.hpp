// The options of `kvasir serve`, and what they make of the server's and the engine's configuration.
// Thread rule: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/engine_flags.hpp"
#include "cli/record_flags.hpp"
#include "server/app/app_config.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct ServeFlags {
  std::string model;
  EngineFlags engine;
  LaunchFlags launch;
  server::HttpConfig http;
  std::vector<std::string> names;

  double itl_target_ms = 50;
  std::string scheduling_policy = "fcfs";
  std::uint32_t max_queued_requests = engine::kDefaultMaxWaiting;
  std::uint64_t max_queued_tokens = 0;
  std::uint32_t default_max_tokens = 1024;
  std::uint32_t stream_interval = 1;

  std::vector<std::string> api_keys;  // --api-key, KVASIR_API_KEY
  std::string api_key_file;
  bool admin_over_unix_socket = false;
  std::uint32_t max_requests_per_key = 0;
  std::vector<std::string> protected_routes, cors_origins;
  bool strict = false;
  bool trust_request_template = false;

  double drain_timeout_s = 30;
  std::uint32_t api_threads = 2;
  std::string log_format = "text", log_level = "info";
  bool check_invariants = false;

  // Errors: those of the key file; usage of what the server's validation finds.
  Result<server::AppConfig> app_config() const;
  // Without --kv-cache-memory: as much as --max-num-seqs sequences of full length take, at most half of the memory that
  // is free, at least one such sequence. `geometry` is the model's. Errors: of sizes that overflow.
  Result<engine::PoolConfig> pool_config(const artifact::ModelGeometry& geometry) const;
};

void add_serve_flags(CLI::App& command, ServeFlags& flags);

}  // namespace kvasir::cli
