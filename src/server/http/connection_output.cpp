// A connection's writing half: one buffer on its way to the kernel, refilled from the exchange when it is empty. What
// comes meanwhile gathers in the exchange and leaves in one write, whether the socket was full or this thread busy. A
// full socket is tried again with every wake-up all the same: it takes bytes before it calls itself writable, and a slow
// reader's progress must show.
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "platform/clock.hpp"
#include "server/http/connection.hpp"

namespace kvasir::server {
namespace {

using SystemError = boost::system::error_code;

constexpr std::uint64_t kProgressBytesMin = 1024;   // less than this in write_stall_ms is no reading
constexpr std::uint64_t kLingerMs = 2000;

// Sets a flag for as long as it lives, exceptions of callbacks included.
class Driving {
 public:
  explicit Driving(bool& flag) : flag_(flag) { flag_ = true; }
  ~Driving() { flag_ = false; }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void Connection::arm_write() {
  if (write_armed_) return;
  write_armed_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const SystemError& error) {
    self->write_armed_ = false;
    if (!error) self->drive();
  });
}

void Connection::drive() {
  if (driving_) return;   // a handler that answers at once comes back here; the loop below sees its answer
  const auto self = shared_from_this();
  const Driving driving(driving_);
  while (phase_ != Phase::closed && flush()) {
    if (exchange_) {
      if (!finish_exchange()) break;
    } else if (close_after_flush_) {
      linger();
      break;
    } else if (phase_ == Phase::lingering || !parse_next()) {
      break;
    }
  }
}

// False if the socket takes no more for now, or is closed.
bool Connection::flush() {
  while (true) {
    if (const auto lost = exchange_ ? exchange_->lost() : std::nullopt) {
      lose(*lost);
      return false;
    }
    if (out_sent_ == out_.size()) {
      out_.clear();
      out_sent_ = 0;
      stalled_since_ms_ = 0;
      if (!exchange_) return true;
      taken_ = exchange_->take(out_);
      if (out_.empty()) return true;
      last_output_ms_ = loop_.now_ms();
    }
    SystemError error;
    const std::size_t bytes =
        socket_.write_some(boost::asio::buffer(out_.data() + out_sent_, out_.size() - out_sent_), error);
    if (error == boost::asio::error::would_block || error == boost::asio::error::try_again) {
      if (stalled_since_ms_ == 0) {
        stalled_since_ms_ = loop_.now_ms();
        window_bytes_ = 0;
      }
      arm_write();
      return false;
    }
    if (error) {
      lose(DisconnectReason::peer_closed);
      return false;
    }
    out_sent_ += bytes;
    window_bytes_ += bytes;
    exchange_bytes_ += bytes;
    ServerContext::add(server_.sent_bytes, bytes);
    ServerContext::add(server_.writes);
    if (exchange_) exchange_->sent(bytes);   // else it is a "100 Continue", which is flushed before an exchange opens
  }
}

// True if the answer is out and the connection can go on, with the next request or with closing.
bool Connection::finish_exchange() {
  if (!taken_.complete && !taken_.cut) return false;
  record(std::nullopt);
  exchange_.reset();
  if (taken_.cut) {
    close();   // no lingering: the point is that the peer sees the end
    return false;
  }
  close_after_flush_ = !taken_.keep_alive || server_.draining;
  become_idle();
  return true;
}

void Connection::record(std::optional<DisconnectReason> lost) {
  ServerContext::take(server_.active_requests);
  if (lost) ServerContext::add(server_.lost);
  if (lost == DisconnectReason::slow_reader || lost == DisconnectReason::stalled) ServerContext::add(server_.dropped_slow);
  if (!server_.config.on_access) return;
  server_.config.on_access({.id = id_, .method = method_, .path = path_, .peer = peer_, .status = exchange_->status(),
                            .sent_bytes = exchange_bytes_,
                            .seconds = platform::seconds_between(begun_ns_, platform::monotonic_ns()), .lost = lost});
}

void Connection::linger() {
  if (input_ended_ || server_.draining) return close();   // a server that ends waits for nobody's last words
  SystemError ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  std::string().swap(pending_);
  phase_ = Phase::lingering;
  deadline_ms_ = loop_.deadline(kLingerMs);
}

void Connection::check_output(std::uint64_t now) {
  const HttpConfig& config = server_.config;
  if (stalled_since_ms_ != 0) {
    if (now < stalled_since_ms_ + config.write_stall_ms) return;
    if (window_bytes_ < kProgressBytesMin) return lose(DisconnectReason::stalled);
    stalled_since_ms_ = now;
    window_bytes_ = 0;
  } else if (exchange_ && config.ping_interval_ms > 0 && now >= last_output_ms_ + config.ping_interval_ms) {
    last_output_ms_ = now;
    exchange_->ping();
  }
}

}  // namespace kvasir::server
