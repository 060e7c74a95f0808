// An HTTP/1.1 server for many slow conversations: thousands of idle connections, streams that last minutes, peers that
// may be rude.
//
// Answers on one connection are given in the order of its requests, one at a time: a pipelined request waits (up to
// max_pipelined_bytes of them). While a request is being answered the socket is still read, so a peer that hangs up is
// noticed at once. A peer that closes its sending half before the answer is complete counts as gone: on TCP a closed
// connection looks the same. Malformed requests get 400 with a JSON body and the connection is closed.
//
// Thread rule: every call from any thread. The handler lives longer than the server. Do not destroy it from a callback.
// Invariants: after create() the port accepts; create() returns before any model is loaded, so probes find a listener.
// Time during which the process did not run (stopped, suspended) is not held against peers.
// Source: RFC 9110, RFC 9112; parsing by Boost.Beast.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "server/http/http_config.hpp"
#include "server/http/responder.hpp"

namespace kvasir::server {

// Counts since the start, but for the two that say "now".
struct HttpStats {
  std::uint64_t open_connections = 0;   // now
  std::uint64_t active_requests = 0;    // now: handed to the handler, not answered to the end
  std::uint64_t accepted = 0;
  std::uint64_t refused_connections = 0;   // over max_connections, answered 503
  std::uint64_t accept_failures = 0;       // descriptors or memory ran out
  std::uint64_t requests = 0;              // handed to the handler
  std::uint64_t bad_requests = 0;          // refused by the HTTP layer: malformed, too large, too slow
  std::uint64_t screened = 0;              // refused by HttpHandler::screen
  std::uint64_t lost = 0;                  // answers that their peer did not wait for, all reasons
  std::uint64_t dropped_slow = 0;          // of these: slow_reader and stalled
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t writes = 0;   // system calls that sent them
};

class HttpServer {
 public:
  // Binds, listens and starts the I/O threads.
  // Errors: usage (config: key, value, range); io (address in use, no permission, a file that is not a socket).
  static Result<std::unique_ptr<HttpServer>> create(HttpConfig config, HttpHandler& handler);
  ~HttpServer();   // stop() and wait()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;   // of the TCP listener; 0 without one
  std::string url() const;      // "http://127.0.0.1:8000", or "unix:PATH" without TCP

  // Stops accepting, closes idle connections, lets answers in progress finish for up to grace_ms, then stops. A second
  // call can only shorten the time.
  void drain(std::uint64_t grace_ms);
  // Closes every connection now; callbacks of answers in progress get shut_down.
  void stop();
  // While any hold lasts, bytes that producers queue wait, and leave together when the last one is let go. For a producer
  // with pieces for many answers at once; what others queue waits with them, so a hold lasts well under a millisecond.
  void hold_output();
  void release_output();

  // Returns when the server has stopped.
  void wait();
  bool draining() const;

  HttpStats stats() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
