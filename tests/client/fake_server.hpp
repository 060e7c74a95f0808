// A server that does what the test says, byte by byte: one thread a connection, plain sockets, loopback or a Unix
// socket. It shares no code with the client, so neither can hide the other's faults. Thread rule: handlers run on their
// connections' threads, several at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kvasir::test {

struct FakeRequest {
  std::string method, target, body;
  std::map<std::string, std::string> headers;  // names in lower case
  std::size_t number = 0;                      // of all requests, from 0
  std::size_t on_connection = 0;               // of this connection's, from 0
};

class FakeReply {
 public:
  explicit FakeReply(int socket) : socket_(socket) {}
  // A whole response with Content-Length.
  void respond(int status, std::string_view body, std::string_view more_headers = "");
  // A chunked event stream, piece by piece.
  void begin_stream();
  void event(std::string_view data);
  void end_stream();  // "[DONE]" and the last chunk
  void raw(std::string_view bytes);
  void close() { open_ = false; }  // the connection ends after the handler
  bool open() const { return open_; }

 private:
  int socket_;
  bool open_ = true;
};

class FakeServer {
 public:
  using Handler = std::function<void(const FakeRequest&, FakeReply&)>;
  // On a free port of 127.0.0.1, or on `unix_path` if that is not empty.
  explicit FakeServer(Handler handler, const std::string& unix_path = "");
  ~FakeServer();  // closes what is open and waits for the handlers
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const;
  std::size_t connections() const { return connections_; }
  std::size_t requests() const { return requests_; }

 private:
  void accept_all();
  void serve(int socket);

  Handler handler_;
  std::string unix_path_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> connections_{0}, requests_{0};
  std::mutex mutex_;  // of the two below
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// An answer as OpenAI's completions (or chat) endpoint streams it: `tokens` pieces "t", the last with the reason, then
// usage.
void stream_answer(FakeReply& reply, bool chat, std::size_t tokens, std::size_t prompt_tokens);

// A port of 127.0.0.1 where nobody listens.
std::uint16_t closed_port();

}  // namespace kvasir::test
