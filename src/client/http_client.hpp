// An HTTP/1.1 client for thousands of exchanges at once: one thread, one server, connections kept alive and used again.
// Bodies arrive piece by piece with the time each piece came off the socket.
// Thread rule: any thread may call; handlers are called on the client's own thread, one at a time, and must not block.
// Invariants: every exchange started ends with exactly one on_end, the destructor's included; no handler is called
// afterwards. Without a limit on connections an exchange starts at once: the client never queues.
// An exchange on a connection that was used before and was closed before any byte of the response is tried once more on
// a new connection (the server closed it while it was idle); its start time stays.
// Source: RFC 9110, RFC 9112; Boost.Beast does the parsing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "client/address.hpp"
#include "client/http.hpp"

namespace kvasir::client {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{600'000};  // without a byte from the server, the wait for the first included
  std::chrono::milliseconds total_timeout{6 * 3'600'000};
  std::size_t header_bytes_max = 64u << 10;
  std::size_t fetch_bytes_max = 64u << 20;  // the body of fetch(); streamed bodies have no limit
};

struct ExchangeEnd {
  Failure failure = Failure::none;
  std::string message;             // of a failure, for people: "cannot connect to 127.0.0.1:9: Connection refused"
  std::uint64_t started_ns = 0;    // start() was called (platform/clock.hpp)
  std::uint64_t connected_ns = 0;  // a connection was ready; 0 if none ever was
  std::uint64_t ended_ns = 0;
  bool reused_connection = false;
};

class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;
  virtual void on_head(const ResponseHead& head, std::uint64_t ns) = 0;
  virtual void on_body(std::string_view bytes, std::uint64_t ns) = 0;
  virtual void on_end(const ExchangeEnd& end) = 0;
};

struct ClientCounters {
  std::uint64_t connections_opened = 0;
  std::uint64_t exchanges_on_reused = 0;
  std::uint64_t retries = 0;  // exchanges tried again because an idle connection had been closed
};

class HttpClient {
 public:
  // Looks the host's name up (blocks). Errors: io if it is unknown.
  static Result<std::unique_ptr<HttpClient>> create(const Address& address, const ClientOptions& options = {});
  // Cancels what runs.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void start(HttpRequest request, std::shared_ptr<ExchangeHandler> handler);
  void cancel_all();

  // One exchange, waited for. REQUIRES: not called from a handler. Errors: io, with the failure's message.
  Result<HttpResponse> fetch(HttpRequest request);

  ClientCounters counters() const;

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::client
