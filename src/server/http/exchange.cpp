#include "server/http/exchange.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace kvasir::server {
namespace {

// What the handler holds: the exchange itself is the connection's too, so it cannot tell when the handler lets go.
class Handle final : public Responder {
 public:
  explicit Handle(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~Handle() override { exchange_->abandon(); }

  void add_header(std::string name, std::string value) override {
    exchange_->add_header(std::move(name), std::move(value));
  }
  bool send(int status, const HeaderFields& headers, std::string_view content_type, std::string_view body) override {
    return exchange_->send(status, headers, content_type, body);
  }
  bool begin_stream(int status, const HeaderFields& headers, std::string_view content_type) override {
    return exchange_->begin_stream(status, headers, content_type);
  }
  bool write(std::string_view chunk) override { return exchange_->write(chunk); }
  bool end() override { return exchange_->end(); }
  void abort() override { exchange_->abort(); }
  void on_disconnect(DisconnectCallback callback) override { exchange_->on_disconnect(std::move(callback)); }
  std::size_t queued_bytes() const override { return exchange_->queued_bytes(); }
  bool gone() const override { return exchange_->gone(); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace

std::string_view to_string(DisconnectReason reason) {
  switch (reason) {
    case DisconnectReason::peer_closed: return "peer_closed";
    case DisconnectReason::slow_reader: return "slow_reader";
    case DisconnectReason::stalled: return "stalled";
    case DisconnectReason::flooded: return "flooded";
    case DisconnectReason::shut_down: return "shut_down";
  }
  return "unknown";
}

ResponderPtr Exchange::responder(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<Handle>(std::move(exchange));
}

template <class Change>
void Exchange::change_and_wake(Change&& change) {
  Responder::DisconnectCallback unused;   // what the callback holds is let go outside the lock
  {
    const std::lock_guard lock(mutex_);
    if (!change()) return;
    if (phase_ == Phase::complete) unused = std::exchange(callback_, nullptr);
    if (std::exchange(woken_, true)) return;
  }
  wake_();
}

void Exchange::queue_head(int status, const HeaderFields& headers, std::string_view content_type, BodyFraming framing,
                          std::size_t length) {
  if (framing == BodyFraming::until_close) traits_.keep_alive = false;
  status_ = status;
  framing_ = framing;
  append_head(queued_,
              {.status = status, .content_type = content_type, .request_id = traits_.id, .framing = framing,
               .length = length, .keep_alive = traits_.keep_alive, .http11 = traits_.http11},
              sticky_, headers);
}

void Exchange::queue_piece(std::string_view chunk) {
  if (framing_ == BodyFraming::chunked) fmt::format_to(std::back_inserter(queued_), "{:x}\r\n", chunk.size());
  queued_ += chunk;
  if (framing_ == BodyFraming::chunked) queued_ += "\r\n";
}

void Exchange::overflow() {
  lost_ = DisconnectReason::slow_reader;
  phase_ = Phase::cut;
  std::string().swap(queued_);
}

void Exchange::add_header(std::string name, std::string value) {
  const std::lock_guard lock(mutex_);
  sticky_.push_back({std::move(name), std::move(value)});
}

bool Exchange::send(int status, const HeaderFields& headers, std::string_view content_type, std::string_view body) {
  bool queued = false;
  change_and_wake([&] {
    if (phase_ != Phase::waiting) return false;
    const bool empty = bodiless(status);
    queue_head(status, headers, empty ? std::string_view() : content_type, empty ? BodyFraming::none : BodyFraming::length,
               body.size());
    if (!empty && !traits_.head_only) queued_ += body;
    phase_ = Phase::complete;
    return queued = true;
  });
  return queued;
}

bool Exchange::begin_stream(int status, const HeaderFields& headers, std::string_view content_type) {
  bool queued = false;
  change_and_wake([&] {
    if (phase_ != Phase::waiting) return false;
    queue_head(status, headers, content_type, traits_.http11 ? BodyFraming::chunked : BodyFraming::until_close, 0);
    event_stream_ = content_type.starts_with("text/event-stream");
    phase_ = Phase::streaming;
    return queued = true;
  });
  return queued;
}

bool Exchange::write(std::string_view chunk) {
  bool queued = false;
  change_and_wake([&] {
    if (phase_ != Phase::streaming) return false;
    queued = true;
    if (chunk.empty() || traits_.head_only) return false;   // an empty chunk would end the stream
    if (queued_.size() + taken_bytes_ + chunk.size() > traits_.max_queued_bytes) {
      overflow();
      queued = false;
    } else {
      queue_piece(chunk);
    }
    return true;
  });
  return queued;
}

bool Exchange::end() {
  bool ended = false;
  change_and_wake([&] {
    if (phase_ != Phase::streaming) return false;
    if (framing_ == BodyFraming::chunked && !traits_.head_only) queued_ += "0\r\n\r\n";
    phase_ = Phase::complete;
    return ended = true;
  });
  return ended;
}

void Exchange::abort() {
  change_and_wake([&] {
    if (phase_ == Phase::complete || phase_ == Phase::cut) return false;
    phase_ = Phase::cut;
    return true;
  });
}

void Exchange::abandon() {
  bool answered = false;
  {
    const std::lock_guard lock(mutex_);
    answered = phase_ != Phase::waiting;
  }
  if (answered) return abort();   // no effect on a complete answer
  const HttpResponse response = error_response(
      500, {.message = "The server ended this request without an answer.",
            .type = "server_error", .param = std::nullopt, .code = "internal_error"});
  send(response.status, {}, response.content_type, response.body);
}

void Exchange::on_disconnect(Responder::DisconnectCallback callback) {
  std::optional<DisconnectReason> lost;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::complete) return;
    lost = lost_;
    if (!lost) std::swap(callback_, callback);   // the one it replaces is let go outside the lock
  }
  if (lost && callback) callback(*lost);
}

std::size_t Exchange::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_.size() + taken_bytes_;
}

bool Exchange::gone() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::cut || lost_.has_value();
}

Exchange::Taken Exchange::take(std::string& out) {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  taken_bytes_ += queued_.size();
  if (out.empty()) {
    std::swap(out, queued_);   // the buffers change places: a steady stream allocates nothing
  } else {
    out += queued_;
  }
  queued_.clear();
  return {.complete = phase_ == Phase::complete, .keep_alive = traits_.keep_alive, .cut = phase_ == Phase::cut};
}

void Exchange::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_bytes_ -= bytes;
}

void Exchange::lose(DisconnectReason reason) {
  Responder::DisconnectCallback callback;
  {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = reason;
    reason = *lost_;
    std::string().swap(queued_);
    taken_bytes_ = 0;
    callback = std::exchange(callback_, nullptr);
    if (phase_ == Phase::complete) callback = nullptr;
    if (phase_ != Phase::complete) phase_ = Phase::cut;
  }
  if (callback) callback(reason);
}

void Exchange::ping() {
  change_and_wake([&] {
    if (phase_ != Phase::streaming || !event_stream_ || traits_.head_only || !queued_.empty() || taken_bytes_ > 0) {
      return false;
    }
    queue_piece(": ping\n\n");
    return true;
  });
}

void Exchange::close_after() {
  const std::lock_guard lock(mutex_);
  traits_.keep_alive = false;
}

bool Exchange::complete() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::complete;
}

std::optional<DisconnectReason> Exchange::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

int Exchange::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace kvasir::server
