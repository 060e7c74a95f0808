// One I/O thread: an event loop, its connections, their deadlines, and one read buffer for all of them.
//
// Internal to the HTTP server: includes Asio. Only the sources beside it include it.
//
// Thread rule: adopt, drain and stop from any thread, drain and stop after the last adopt; the rest on the loop's own.
// Invariants: now_ms() counts only time in which the loop ran, so peers are not blamed for a stopped process. The loop
// ends once it drains or stops and no connection of any loop is left.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "server/http/wake_list.hpp"
#include "server/http/server_context.hpp"

namespace kvasir::server {

using Socket = boost::asio::generic::stream_protocol::socket;

class Loop {
 public:
  explicit Loop(ServerContext& server);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void start();
  void join();
  boost::asio::io_context& context() { return context_; }

  // Takes a socket over, which open_connections counts already.
  void adopt(Socket socket, bool unix_socket);
  void drain(std::uint64_t grace_ms);
  void stop();

  // On the loop's thread.
  ServerContext& server() { return server_; }
  const std::shared_ptr<WakeList>& wake_list() const { return wake_list_; }
  std::span<char> scratch() { return scratch_; }
  std::uint64_t now_ms() const { return now_ms_; }
  // The first moment at which `timeout_ms` have surely passed, counting the clock's grain.
  std::uint64_t deadline(std::uint64_t timeout_ms) const { return now_ms_ + timeout_ms + interval_ms_; }
  void remove(Connection& connection);

 private:
  void run();
  void deliver();
  void schedule_sweep();
  void sweep();
  void close_all();
  void end_if_done();
  void warn_of(const std::exception& error) const;

  static constexpr std::size_t kScratchBytes = 64 << 10;

  ServerContext& server_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  boost::asio::steady_timer sweep_timer_{context_};
  std::shared_ptr<WakeList> wake_list_;
  std::array<char, kScratchBytes> scratch_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::weak_ptr<Connection>> delivered_;
  const std::uint64_t interval_ms_;
  std::uint64_t now_ms_ = 1;   // 0 means "no deadline"
  std::uint64_t swept_at_ns_ = 0;
  std::uint64_t drain_until_ms_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvasir::server
