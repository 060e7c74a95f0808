#include "server/http/listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <filesystem>
#include <utility>

#include "server/http/response_head.hpp"

namespace kvasir::server {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using SystemError = boost::system::error_code;

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr std::size_t kUnixPathMax = 107;   // unix(7): sun_path has 108 bytes with its NUL

Error io_error(const std::string& what, const SystemError& error) {
  return {ErrorCode::io, fmt::format("{}: {}", what, error.message())};
}

// Makes way for a new socket file at `path`.
Status clear_path(asio::io_context& context, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return ok_status();
  if (!fs::is_socket(status)) {
    return Error{ErrorCode::io, fmt::format("--uds {}: the file exists and is not a socket", path)};
  }
  asio::local::stream_protocol::socket probe(context);
  SystemError refused;
  probe.connect(asio::local::stream_protocol::endpoint(path), refused);
  if (!refused) return Error{ErrorCode::io, fmt::format("--uds {}: another process listens there", path)};
  if (!fs::remove(path, error)) {
    return Error{ErrorCode::io, fmt::format("--uds {}: cannot remove the old socket: {}", path, error.message())};
  }
  return ok_status();
}

const std::string& too_many_connections() {
  static const std::string kAnswer = [] {
    const std::string body = error_body({.message = "The server has as many connections as max_connections allows.",
                                         .type = "server_error", .param = std::nullopt, .code = "server_is_overloaded"});
    std::string answer;
    append_head(answer, {.status = 503, .content_type = "application/json", .request_id = {},
                         .framing = BodyFraming::length, .length = body.size(), .keep_alive = false},
                {{"Retry-After", "1"}}, {});
    return answer + body;
  }();
  return kAnswer;
}

}  // namespace

Listener::Listener(ServerContext& server, std::vector<Loop*> loops, std::string path)
    : server_(server), loops_(std::move(loops)), path_(std::move(path)), acceptor_(loops_[0]->context()),
      pause_timer_(loops_[0]->context()) {}

Listener::~Listener() {
  std::error_code ignored;
  if (bound_ && !path_.empty()) fs::remove(path_, ignored);
}

Result<std::unique_ptr<Listener>> Listener::tcp(ServerContext& server, std::vector<Loop*> loops, const std::string& host,
                                                std::uint16_t port) {
  SystemError error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) {
    return Error{ErrorCode::usage, fmt::format("--host {}: must be an IPv4 or IPv6 address, or localhost", host)};
  }
  std::unique_ptr<Listener> listener(new Listener(server, std::move(loops), ""));
  KV_TRY(listener->open(asio::ip::tcp::endpoint(address, port), fmt::format("--host {} --port {}", host, port)));
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::unix_socket(ServerContext& server, std::vector<Loop*> loops,
                                                        const std::string& path) {
  if (path.size() > kUnixPathMax) {
    return Error{ErrorCode::usage, fmt::format("--uds {}: has {} characters; a socket's path has at most {}", path,
                                               path.size(), kUnixPathMax)};
  }
  std::unique_ptr<Listener> listener(new Listener(server, std::move(loops), path));
  KV_TRY(clear_path(listener->loops_[0]->context(), path));
  KV_TRY(listener->open(asio::local::stream_protocol::endpoint(path), "--uds " + path));
  return listener;
}

Status Listener::open(const Protocol::endpoint& endpoint, const std::string& name) {
  SystemError error;
  if (acceptor_.open(endpoint.protocol(), error)) return io_error(name, error);
  if (path_.empty()) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (acceptor_.bind(endpoint, error)) return io_error(name, error);
  bound_ = true;
  if (!path_.empty()) {   // before listen(): until then nobody can connect
    std::error_code refused;
    fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write, refused);
    if (refused) return Error{ErrorCode::io, fmt::format("{}: cannot set mode 0600: {}", name, refused.message())};
  }
  if (acceptor_.listen(asio::socket_base::max_listen_connections, error)) return io_error(name, error);
  acceptor_.non_blocking(true, error);
  return ok_status();
}

std::uint16_t Listener::port() const {
  SystemError error;
  const auto generic = acceptor_.local_endpoint(error);
  asio::ip::tcp::endpoint tcp;
  if (error || !path_.empty() || generic.size() > tcp.capacity()) return 0;
  std::copy_n(reinterpret_cast<const char*>(generic.data()), generic.size(), reinterpret_cast<char*>(tcp.data()));
  return tcp.port();
}

void Listener::accept() {
  Loop& loop = *loops_[next_++ % loops_.size()];
  acceptor_.async_accept(loop.context(), [this, &loop](const SystemError& error, Socket socket) {
    if (closed_) return;
    if (!error) {
      on_socket(std::move(socket), loop);
      return accept();
    }
    if (error == asio::error::connection_aborted || error == asio::error::interrupted) return accept();
    ServerContext::add(server_.accept_failures);
    server_.warn(fmt::format("cannot accept connections for the moment: {}", error.message()));
    pause();
  });
}

void Listener::pause() {
  pause_timer_.expires_after(kPause);
  pause_timer_.async_wait([this](const SystemError& error) {
    if (!error && !closed_) accept();
  });
}

void Listener::on_socket(Socket socket, Loop& loop) {
  if (server_.open_connections.fetch_add(1) < server_.config.max_connections) {
    ServerContext::add(server_.accepted);
    return loop.adopt(std::move(socket), !path_.empty());
  }
  --server_.open_connections;
  ServerContext::add(server_.refused_connections);
  SystemError ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(too_many_connections()), ignored);
  socket.shutdown(Socket::shutdown_send, ignored);
}

void Listener::close() {
  closed_ = true;
  SystemError ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
}

}  // namespace kvasir::server
