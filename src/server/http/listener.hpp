// A listening socket, TCP or Unix, that hands what it accepts to the loops in turn.
//
// Internal to the HTTP server: includes Asio.
//
// Thread rule: open() before the loops start; close() on the first loop's thread.
// Invariants: when descriptors or memory run out, accepting pauses for a moment and goes on; it never spins and never
// ends. Over max_connections a peer gets 503 and is closed.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "server/http/loop.hpp"

namespace kvasir::server {

class Listener {
 public:
  // Errors: usage (not an address); io (in use, no permission).
  static Result<std::unique_ptr<Listener>> tcp(ServerContext& server, std::vector<Loop*> loops, const std::string& host,
                                               std::uint16_t port);
  // A socket file that nobody listens to any more is replaced; the new one has mode 0600 before anyone can connect.
  // Errors: usage (path too long); io (in use, another kind of file, no permission).
  static Result<std::unique_ptr<Listener>> unix_socket(ServerContext& server, std::vector<Loop*> loops,
                                                       const std::string& path);
  ~Listener();   // removes the socket file
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::uint16_t port() const;
  void start() { accept(); }
  void close();

 private:
  using Protocol = boost::asio::generic::stream_protocol;

  Listener(ServerContext& server, std::vector<Loop*> loops, std::string path);
  Status open(const Protocol::endpoint& endpoint, const std::string& name);
  void accept();
  void on_socket(Socket socket, Loop& loop);
  void pause();

  ServerContext& server_;
  const std::vector<Loop*> loops_;
  const std::string path_;   // of a Unix socket; empty: TCP
  boost::asio::basic_socket_acceptor<Protocol> acceptor_;
  boost::asio::steady_timer pause_timer_;
  std::size_t next_ = 0;
  bool bound_ = false;
  bool closed_ = false;
};

}  // namespace kvasir::server
