// What the HTTP tests share: a client that can misbehave, and a handler made of a function.
// Waits are counted in polls, not in time: a process that is stopped in between fails nothing.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/http/http_server.hpp"

namespace kvasir::server {

inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class FunctionHandler : public HttpHandler {
 public:
  using Function = std::function<void(HttpRequest, ResponderPtr)>;
  explicit FunctionHandler(Function function) : function_(std::move(function)) {}
  void handle(HttpRequest request, ResponderPtr responder) override { function_(std::move(request), std::move(responder)); }

 private:
  Function function_;
};

struct RawResponse {
  int status = 0;
  std::string head;   // with the blank line
  std::string body;   // de-chunked
  bool complete = false;

  std::string header(std::string_view name) const {
    const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// A blocking socket.
class RawClient {
 public:
  // Not connected yet: its descriptor is taken.
  RawClient() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {}
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) : RawClient() {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    connect(port);
  }
  void connect(std::uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  explicit RawClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof address.sun_path - 1));
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_), buffer_(std::move(other.buffer_)) {}
  RawClient& operator=(RawClient&&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void half_close() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // Everything up to and with `marker`; what came before the end if the peer closed first.
  std::string read_until(std::string_view marker) {
    std::size_t at;
    while ((at = buffer_.find(marker)) == std::string::npos) {
      if (!fill()) return std::exchange(buffer_, {});
    }
    const std::string part = buffer_.substr(0, at + marker.size());
    buffer_.erase(0, part.size());
    return part;
  }
  std::string read_bytes(std::size_t count) {
    while (buffer_.size() < count && fill()) {
    }
    const std::string part = buffer_.substr(0, count);
    buffer_.erase(0, part.size());
    return part;
  }
  std::string read_to_end() {
    while (fill()) {
    }
    return std::exchange(buffer_, {});
  }
  // Whether the peer closes without another byte.
  bool closed_by_peer() { return read_to_end().empty(); }

  RawResponse response(bool head_only = false) {
    RawResponse response;
    response.head = read_until("\r\n\r\n");
    if (response.head.size() < 12) return response;
    response.status = std::atoi(response.head.c_str() + 9);
    if (head_only || response.status == 204) {
      response.complete = true;
    } else if (response.header("Transfer-Encoding") == "chunked") {
      read_chunks(response);
    } else if (const std::string length = response.header("Content-Length"); !length.empty()) {
      response.body = read_bytes(std::stoul(length));
      response.complete = response.body.size() == std::stoul(length);
    } else {
      response.body = read_to_end();
      response.complete = true;
    }
    return response;
  }
  RawResponse get(const std::string& target, const std::string& fields = "") {
    send("GET " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    return response();
  }
  RawResponse post(const std::string& target, const std::string& body, const std::string& fields = "") {
    send("POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields +
         "\r\n" + body);
    return response();
  }

 private:
  bool fill() {
    pollfd waiting = {fd_, POLLIN, 0};
    for (int i = 0; i < 300; ++i) {
      if (::poll(&waiting, 1, 100) == 0) continue;
      char bytes[16384];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      buffer_.append(bytes, static_cast<std::size_t>(count));
      return true;
    }
    ADD_FAILURE() << "nothing came and the connection stayed open";
    return false;
  }
  void read_chunks(RawResponse& response) {
    while (true) {
      const std::string line = read_until("\r\n");
      if (!line.ends_with("\r\n")) return;   // cut
      const std::size_t size = std::stoul(line, nullptr, 16);
      const std::string chunk = read_bytes(size + 2);
      if (size == 0) response.complete = chunk == "\r\n";
      if (size == 0 || chunk.size() < size + 2) return;
      response.body += chunk.substr(0, size);
    }
  }

  int fd_ = -1;
  bool connected_ = false;
  std::string buffer_;
};

// A server on a free port of the loopback.
struct TestServer {
  explicit TestServer(FunctionHandler::Function function, HttpConfig config = {}) : handler(std::move(function)) {
    config.port = 0;
    auto created = HttpServer::create(std::move(config), handler);
    if (!created) {
      ADD_FAILURE() << created.error().message;
      std::abort();
    }
    http = std::move(created).value();
  }
  RawClient client(int receive_buffer = 0) const { return RawClient(http->port(), receive_buffer); }
  // A good request still works.
  void expect_alive() const { EXPECT_EQ(client().get("/alive").status, 200); }

  FunctionHandler handler;
  std::unique_ptr<HttpServer> http;
};

inline void answer_ok(const HttpRequest&, const ResponderPtr& responder) { responder->send(200, {}, "text/plain", "ok"); }

}  // namespace kvasir::server
