// The limits of the HTTP server. Every wait and every buffer a peer can cause has one.
// Thread rule: a value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

// One answered (or lost) request, for the access log and for metrics. No body, no query, no key.
struct AccessRecord {
  std::string id;
  std::string method;
  std::string path;
  std::string peer;
  int status = 0;               // 0: lost before a head was queued
  std::uint64_t sent_bytes = 0;   // that the kernel took, head included
  double seconds = 0;           // from the last byte of the request to the last of the answer
  std::optional<DisconnectReason> lost;
};

struct HttpConfig {
  std::string host = "127.0.0.1";   // an address, not a name; empty: no TCP
  std::uint16_t port = 8000;        // 0: any free one, see HttpServer::port()
  std::string unix_socket;          // path; empty: none. Mode 0600
  std::uint32_t io_threads = 1;

  std::uint32_t max_connections = 16384;
  std::uint32_t max_header_bytes = 32 << 10;    // request line and fields together
  std::uint32_t max_header_count = 100;
  std::uint64_t max_body_bytes = 16 << 20;
  std::uint64_t max_buffered_bytes = 256 << 20;   // of all requests that are being read, together
  std::uint32_t max_pipelined_bytes = 64 << 10;   // beyond the request that is being answered
  std::uint64_t max_queued_bytes = 4 << 20;       // of one stream

  std::uint32_t idle_timeout_ms = 75'000;      // between requests
  std::uint32_t header_timeout_ms = 10'000;    // from a request's first byte to the end of its head
  std::uint32_t body_timeout_ms = 60'000;      // from the end of the head to the last byte
  std::uint32_t write_stall_ms = 30'000;       // a peer that reads less than 1 KiB in this time is dropped
  std::uint32_t ping_interval_ms = 15'000;     // ": ping" in an event stream that is silent; 0: never

  // Called on an I/O thread after each answer. Must not block.
  std::function<void(const AccessRecord&)> on_access;
  // SIGINT and SIGTERM while the server lives; count is 1 for the first. Unset: signals are left alone.
  std::function<void(int signal, int count)> on_signal;
  // What the server itself has to say (descriptors ran out, a handler threw).
  std::function<void(const std::string& message)> on_warning;
};

// Errors: usage, naming the key, its value and the range.
Status validate(const HttpConfig& config);

}  // namespace kvasir::server
