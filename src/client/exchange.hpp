// One request and its response on one connection, as a chain of asynchronous operations. Internal to client.
// Thread rule: the client's thread alone.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "client/http_client.hpp"

namespace kvasir::client {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using Stream = beast::basic_stream<asio::generic::stream_protocol>;

struct Connection {
  explicit Connection(asio::io_context& io) : stream(io) {}
  Stream stream;
  beast::flat_buffer buffer;  // bytes read beyond the last response: empty when idle
};

class Exchange;

// What exchanges share.
struct Shared {
  asio::io_context io{1};
  Address address;
  ClientOptions options;
  std::vector<asio::generic::stream_protocol::endpoint> endpoints;
  std::vector<std::unique_ptr<Connection>>
      idle;  // the last used at the back: it is the least likely to have been closed
  std::unordered_set<std::shared_ptr<Exchange>> running;
  std::atomic<std::uint64_t> connections_opened{0}, exchanges_on_reused{0}, retries{0};
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Shared& shared, HttpRequest request, std::shared_ptr<ExchangeHandler> handler, std::uint64_t started_ns);
  void run();
  void cancel();

 private:
  void arm_total_timeout();
  void connect();
  void write();
  void read_head();
  void read_body();
  void on_failure(const beast::error_code& error, const char* doing);
  bool try_again(const beast::error_code& error);
  void finish(Failure failure, std::string message);
  std::string describe(const beast::error_code& error, const char* doing) const;

  Shared& shared_;
  http::request<http::string_body> request_;
  std::shared_ptr<ExchangeHandler> handler_;
  std::unique_ptr<Connection> connection_;
  std::optional<http::response_parser<http::buffer_body>> parser_;
  asio::steady_timer total_;
  ExchangeEnd end_;
  std::array<char, 16 * 1024> piece_;
  Failure cut_ = Failure::none;  // why we closed the stream ourselves
  bool ended_ = false;
};

}  // namespace kvasir::client
