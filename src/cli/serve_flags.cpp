#include "cli/serve_flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/option_values.hpp"
#include "platform/memory.hpp"
#include "sched/queue_policy.hpp"
#include "server/api/model_facts.hpp"
#include "store/footprint.hpp"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kMaxMilliseconds = 3'600'000;

server::LogLevel level_of(const std::string& word) {
  if (word == "error") return server::LogLevel::error;
  if (word == "warning") return server::LogLevel::warning;
  return word == "debug" ? server::LogLevel::debug : server::LogLevel::info;
}

void add_address_flags(CLI::App& command, ServeFlags& flags) {
  constexpr const char* kGroup = "Address";
  command.add_option("--host", flags.http.host, "Address to listen on; 0.0.0.0 = every IPv4 one (default 127.0.0.1)")
      ->type_name("ADDRESS")->group(kGroup);
  command.add_option("--port", flags.http.port, "TCP port; 0 = any free one (default 8000)")
      ->check(whole_number(0, 65'535))->type_name("N")->group(kGroup);
  command.add_option("--uds", flags.http.unix_socket, "Listen on this Unix socket too")->check(not_empty())->type_name("PATH")->group(kGroup);
  command.add_option("--served-model-name,-a,--alias", flags.names, "Name that clients ask for; may be repeated (default: the file's name)")
      ->allow_extra_args(false)->take_all()->type_name("NAME")->group(kGroup);
}

void add_batching_flags(CLI::App& command, ServeFlags& flags) {
  constexpr const char* kGroup = "Batching";
  command.add_option("--itl-target", flags.itl_target_ms, "Milliseconds between tokens that running answers keep beside new prompts (up to 1.7 times as many where they alone take most of it); 0 = throughput first (default 50)")
      ->check(number(0, 60'000))->type_name("MS")->group(kGroup);
  command.add_option("--scheduling-policy", flags.scheduling_policy, "fcfs, or priority: lower `priority` first, waiting counts (default fcfs)")
      ->check(one_of({"fcfs", "priority"}))->type_name("POLICY")->group(kGroup);
  command.add_option("--max-num-queued-reqs", flags.max_queued_requests, "Requests that may wait; more get 503 (default 1024)")
      ->check(whole_number(1, 1u << 20))->type_name("N")->group(kGroup);
  command.add_option("--max-num-queued-tokens", flags.max_queued_tokens, "Prompt tokens that may wait; 0 = no bound (default 0)")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))->type_name("N")->group(kGroup);
  command.add_option("--default-max-tokens", flags.default_max_tokens, "Most tokens of an answer whose request sets no limit; 0 = what the context leaves (default 1024)")
      ->check(whole_number(0, 1u << 24))->type_name("N")->group(kGroup);
  command.add_option("--stream-interval", flags.stream_interval, "Tokens that a stream's chunk carries, at most; the first always goes at once. More = less work for server and client, a choppier text (default 1)")
      ->check(whole_number(1, server::api::kMaxStreamInterval))->type_name("N")->group(kGroup);
}

void add_access_flags(CLI::App& command, ServeFlags& flags) {
  constexpr const char* kGroup = "Access";
  command.add_option("--api-key-file", flags.api_key_file, "Keys that clients must send, one a line: KEY, TENANT KEY or TENANT KEY admin")
      ->check(not_empty())->type_name("FILE")->group(kGroup);
  command.add_option("--api-key", flags.api_keys, "A key that clients must send; better in KVASIR_API_KEY or a file, other users see a command line")
      ->allow_extra_args(false)->take_all()->type_name("KEY")->group(kGroup);
  command.add_flag("--admin-over-unix-socket", flags.admin_over_unix_socket, "Who may open the Unix socket may use admin routes without a key")
      ->group(kGroup);
  command.add_option("--max-requests-per-key", flags.max_requests_per_key, "Requests of one tenant at once; more get 429; 0 = no limit (default 0)")
      ->check(whole_number(0, 1u << 20))->type_name("N")->group(kGroup);
  command.add_option("--protect", flags.protected_routes, "Routes that need a key too: health, metrics or version; may be repeated")
      ->check(one_of({"health", "metrics", "version"}))->allow_extra_args(false)->take_all()->type_name("ROUTES")->group(kGroup);
  command.add_option("--cors-origin", flags.cors_origins, "Web origin whose pages may call the server, or '*'; may be repeated")
      ->allow_extra_args(false)->take_all()->type_name("ORIGIN")->group(kGroup);
  command.add_flag("--strict-fields", flags.strict, "Refuse request fields that are unknown or have no effect here")->group(kGroup);
  command.add_flag("--trust-request-chat-template", flags.trust_request_template, "Render chat templates that requests bring along")
      ->group(kGroup);
}

void add_operation_flags(CLI::App& command, ServeFlags& flags) {
  constexpr const char* kGroup = "Operation";
  command.add_option("--drain-timeout", flags.drain_timeout_s, "Seconds that running answers get after SIGTERM (default 30)")
      ->check(number(0, 3600))->type_name("S")->group(kGroup);
  command.add_option("--max-connections", flags.http.max_connections, "Open connections; more get 503 (default 16384)")
      ->check(whole_number(1, 1u << 20))->type_name("N")->group(kGroup);
  command.add_option("--max-body-size", flags.http.max_body_bytes, "Largest request body (default 16MiB)")
      ->transform(byte_size())->type_name("SIZE")->group(kGroup);
  command.add_option("--idle-timeout", flags.http.idle_timeout_ms, "Milliseconds that a connection may stay open without a request (default 75000)")
      ->check(whole_number(1, kMaxMilliseconds))->type_name("MS")->group(kGroup);
  command.add_option("--api-threads", flags.api_threads, "Threads that read requests and tokenize (default 2)")
      ->check(whole_number(1, 64))->type_name("N")->group(kGroup);
  command.add_option("--log-format", flags.log_format, "text or json, on stderr (default text)")
      ->check(one_of({"text", "json"}))->type_name("FORMAT")->group(kGroup);
  command.add_option("--log-level", flags.log_level, "error, warning, info or debug (default info)")
      ->check(one_of({"error", "warning", "info", "debug"}))->type_name("LEVEL")->group(kGroup);
  command.add_flag("--check-invariants", flags.check_invariants, "Re-derive the engine's accounts after every step; slow, for soaks")
      ->group(kGroup);
}

}  // namespace

Result<server::AppConfig> ServeFlags::app_config() const {
  server::AppConfig config;
  config.http = http;
  for (std::size_t i = 0; i < api_keys.size(); ++i) KV_TRY(config.keys.add(api_keys[i], "api-key"));
  if (!api_key_file.empty()) KV_TRY(config.keys.add_file(api_key_file));
  config.admin_over_unix_socket = admin_over_unix_socket;
  config.cors_origins = cors_origins;
  config.protected_routes = protected_routes;
  config.loop.max_queued_requests = max_queued_requests;
  config.loop.max_queued_tokens = max_queued_tokens;
  config.loop.check_invariants = check_invariants;
  config.names = names;
  if (config.names.empty()) config.names = {std::filesystem::path(model).stem().string()};
  config.default_max_tokens = default_max_tokens;
  config.max_requests_per_key = max_requests_per_key;
  config.stream_interval = stream_interval;
  config.priority_scheduling = scheduling_policy == "priority";
  config.strict = strict;
  config.trust_request_template = trust_request_template;
  config.api_threads = api_threads;
  config.drain_timeout_ms = static_cast<std::uint64_t>(drain_timeout_s * 1000);
  config.log_format = log_format == "json" ? server::LogFormat::json : server::LogFormat::text;
  config.log_level = level_of(log_level);
  config.version = KVASIR_VERSION;
  KV_TRY(server::validate(config));
  return config;
}

Result<engine::PoolConfig> ServeFlags::pool_config(const artifact::ModelGeometry& geometry) const {
  engine::PoolConfig config = engine.pool_config();
  config.itl_target_s = itl_target_ms / 1000;
  config.policy = scheduling_policy == "priority" ? sched::Policy::priority : sched::Policy::fcfs;
  config.default_max_tokens = default_max_tokens;
  const std::uint32_t sequences = engine.max_num_seqs.value_or(std::min(engine::kDefaultMaxSequences, config.max_batched_tokens));
  config.max_queued = max_queued_requests + sequences;   // the loop bounds what waits
  if (config.kv_cache_bytes != 0) return config;
  const std::uint32_t rows = config.max_model_len != 0 ? std::min(config.max_model_len, geometry.context) : geometry.context;
  KV_ASSIGN(const std::uint64_t one, store::capacity_for_rows(geometry.kv_geometry(config.kv_format, config.block_tokens), rows));
  KV_ASSIGN(const std::uint64_t all, checked_mul(one, sequences));
  KV_ASSIGN(const platform::Headroom headroom, platform::read_headroom());
  config.kv_cache_bytes = std::max(one, std::min(all, headroom.bytes() / 2));
  return config;
}

void add_serve_flags(CLI::App& command, ServeFlags& flags) {
  add_model_argument(command, flags.model);
  add_address_flags(command, flags);
  add_batching_flags(command, flags);
  add_access_flags(command, flags);
  add_operation_flags(command, flags);
  add_engine_flags(command, flags.engine);
  add_context_shift_options(command, flags.engine);
  add_launch_flags(command, flags.launch);
}

}  // namespace kvasir::cli
