#include "tests/client/fake_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/check.hpp"

namespace kvasir::test {
namespace {

constexpr int kBacklog = 1024;

int listen_on_loopback(std::uint16_t& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  KV_CHECK(bind(listener, any, size) == 0 && listen(listener, kBacklog) == 0 && getsockname(listener, any, &size) == 0,
           "a loopback port is free");
  port = ntohs(address.sin_port);
  return listener;
}

int listen_on_path(const std::string& path) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KV_CHECK(path.size() < sizeof address.sun_path, "the socket's path fits");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  unlink(path.c_str());
  KV_CHECK(
      bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener, kBacklog) == 0,
      "the socket can be made");
  return listener;
}

// Reads until `text` holds at least `bytes` bytes; false if the peer ended first.
bool fill(int socket, std::string& text, std::size_t bytes) {
  char piece[4096];
  while (text.size() < bytes) {
    const ssize_t got = recv(socket, piece, sizeof piece, 0);
    if (got <= 0) return false;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return true;
}

// The next request out of `buffer` and the socket; false at the end of the connection.
bool read_request(int socket, std::string& buffer, FakeRequest& request) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!fill(socket, buffer, buffer.size() + 1)) return false;
  }
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
  request.method = head.substr(0, first);
  request.target = head.substr(first + 1, second - first - 1);
  for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
    const std::size_t stop = head.find("\r\n", at), colon = head.find(':', at);
    std::string name = head.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::size_t value = head.find_first_not_of(' ', colon + 1);
    request.headers[name] = head.substr(value, stop - value);
    at = stop + 2;
  }
  const auto length = request.headers.find("content-length");
  const std::size_t bytes = length == request.headers.end() ? 0 : std::strtoull(length->second.c_str(), nullptr, 10);
  if (!fill(socket, buffer, bytes)) return false;
  request.body = buffer.substr(0, bytes);
  buffer.erase(0, bytes);
  return true;
}

}  // namespace

void FakeReply::raw(std::string_view bytes) {
  while (open_ && !bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return close();
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void FakeReply::respond(int status, std::string_view body, std::string_view more_headers) {
  raw(fmt::format("HTTP/1.1 {} Any\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", status,
                  body.size(), more_headers, body));
}

void FakeReply::begin_stream() {
  raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void FakeReply::event(std::string_view data) { raw(fmt::format("{:x}\r\ndata: {}\n\n\r\n", data.size() + 8, data)); }

void FakeReply::end_stream() {
  event("[DONE]");
  raw("0\r\n\r\n");
}

FakeServer::FakeServer(Handler handler, const std::string& unix_path)
    : handler_(std::move(handler)), unix_path_(unix_path) {
  listener_ = unix_path.empty() ? listen_on_loopback(port_) : listen_on_path(unix_path);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  stopping_ = true;
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();  // none is added any more
  for (const int socket : sockets_) ::close(socket);
  if (!unix_path_.empty()) unlink(unix_path_.c_str());
}

std::string FakeServer::url() const {
  return unix_path_.empty() ? fmt::format("http://127.0.0.1:{}", port_) : "unix:" + unix_path_;
}

void FakeServer::accept_all() {
  while (!stopping_) {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0) continue;
    const int socket = accept(listener_, nullptr, nullptr);
    if (socket < 0) continue;
    const int on = 1;   // pieces leave as they are written
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void FakeServer::serve(int socket) {
  std::string buffer;
  FakeReply reply(socket);
  FakeRequest request;
  for (std::size_t count = 0; reply.open() && read_request(socket, buffer, request); ++count) {
    request.number = requests_++;
    request.on_connection = count;
    handler_(request, reply);
    request = {};
  }
  shutdown(socket, SHUT_RDWR);
}

void stream_answer(FakeReply& reply, bool chat, std::size_t tokens, std::size_t prompt_tokens) {
  reply.begin_stream();
  for (std::size_t i = 0; i < tokens; ++i) {
    const char* reason = i + 1 == tokens ? "\"length\"" : "null";
    reply.event(
        chat ? fmt::format(R"({{"choices":[{{"index":0,"delta":{{"content":"t"}},"finish_reason":{}}}]}})", reason)
             : fmt::format(R"({{"choices":[{{"index":0,"text":"t","finish_reason":{}}}]}})", reason));
  }
  reply.event(
      fmt::format(R"({{"choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":{}}}}})", prompt_tokens, tokens));
  reply.end_stream();
}

std::uint16_t closed_port() {
  std::uint16_t port = 0;
  ::close(listen_on_loopback(port));
  return port;
}

}  // namespace kvasir::test
