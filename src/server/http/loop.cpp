#include "server/http/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "platform/clock.hpp"
#include "platform/thread_name.hpp"
#include "server/http/connection.hpp"

namespace kvasir::server {
namespace {

constexpr std::uint64_t kSweepMsMin = 5, kSweepMsMax = 250;

// A quarter of the shortest limit: deadlines are late by at most that.
std::uint64_t sweep_interval(const HttpConfig& config) {
  std::uint64_t shortest = std::min({config.idle_timeout_ms, config.header_timeout_ms, config.body_timeout_ms,
                                     config.write_stall_ms});
  if (config.ping_interval_ms > 0) shortest = std::min<std::uint64_t>(shortest, config.ping_interval_ms);
  return std::clamp(shortest / 4, kSweepMsMin, kSweepMsMax);
}

}  // namespace

Loop::Loop(ServerContext& server)
    : server_(server),
      wake_list_(std::make_shared<WakeList>([this] { boost::asio::post(context_, [this] { deliver(); }); })),
      interval_ms_(sweep_interval(server.config)),
      swept_at_ns_(platform::monotonic_ns()) {}

Loop::~Loop() { wake_list_->close(); }

void Loop::start() {
  schedule_sweep();
  thread_ = std::thread([this] { run(); });
}

void Loop::join() {
  if (thread_.joinable()) thread_.join();
}

void Loop::run() {
  platform::name_this_thread("kv-http");
  while (true) {
    try {
      context_.run();
      return;
    } catch (const std::exception& error) {   // from a callback of the server's user
      warn_of(error);
    }
  }
}

void Loop::warn_of(const std::exception& error) const {
  server_.warn(fmt::format("a callback of the HTTP server threw: {}", error.what()));
}

void Loop::adopt(Socket socket, bool unix_socket) {
  boost::asio::post(context_, [this, unix_socket, taken = std::move(socket)]() mutable {
    auto connection = std::make_shared<Connection>(*this, std::move(taken), unix_socket);
    connection->slot = connections_.size();
    connections_.push_back(connection);
    connection->start();
    if (stopping_ || drain_until_ms_ != 0) connection->begin_drain();
  });
}

void Loop::remove(Connection& connection) {
  connections_.back()->slot = connection.slot;
  std::swap(connections_[connection.slot], connections_.back());
  connections_.pop_back();
  if (--server_.open_connections == 0) boost::asio::post(context_, [this] { end_if_done(); });
}

void Loop::deliver() {
  wake_list_->take(delivered_);
  for (const std::weak_ptr<Connection>& weak : delivered_) {
    if (const auto connection = weak.lock()) connection->drive();
  }
}

void Loop::schedule_sweep() {
  sweep_timer_.expires_after(std::chrono::milliseconds(interval_ms_));
  sweep_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) sweep();
  });
}

void Loop::sweep() {
  const std::uint64_t now_ns = platform::monotonic_ns();
  now_ms_ += std::min((now_ns - swept_at_ns_) / 1'000'000, 2 * interval_ms_);
  swept_at_ns_ = now_ns;
  try {
    // From the back: a connection that is removed changes places with one that was looked at already.
    for (std::size_t i = connections_.size(); i-- > 0;) {
      const std::shared_ptr<Connection> connection = connections_[i];
      connection->check_deadlines();
    }
    if (stopping_ || (drain_until_ms_ != 0 && now_ms_ >= drain_until_ms_)) close_all();
  } catch (const std::exception& error) {   // the next sweep goes on where this one ended
    warn_of(error);
  }
  schedule_sweep();
  end_if_done();
}

void Loop::end_if_done() {
  if ((!stopping_ && drain_until_ms_ == 0) || server_.open_connections != 0) return;
  wake_list_->close();
  context_.stop();   // what still waits (the timer, signals) needs no answer
}

void Loop::close_all() {
  stopping_ = true;
  while (!connections_.empty()) {
    const std::shared_ptr<Connection> connection = connections_.back();
    connection->lose(DisconnectReason::shut_down);
  }
}

void Loop::drain(std::uint64_t grace_ms) {
  boost::asio::post(context_, [this, grace_ms] {
    const std::uint64_t until = now_ms_ + grace_ms;
    drain_until_ms_ = drain_until_ms_ == 0 ? until : std::min(drain_until_ms_, until);
    for (std::size_t i = connections_.size(); i-- > 0;) {
      const std::shared_ptr<Connection> connection = connections_[i];
      connection->begin_drain();
    }
    end_if_done();
  });
}

void Loop::stop() {
  boost::asio::post(context_, [this] {
    close_all();
    end_if_done();
  });
}

}  // namespace kvasir::server
