#include "client/exchange.hpp"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "platform/clock.hpp"

namespace kvasir::client {
namespace {

http::request<http::string_body> make_request(const Address& address, HttpRequest request) {
  http::request<http::string_body> made;
  made.version(11);
  made.method_string(request.method);
  made.target(address.base + request.target);
  made.set(http::field::host, address.authority());
  made.set(http::field::user_agent, "kvasir");
  for (const Header& header : request.headers) made.set(header.name, header.value);
  made.body() = std::move(request.body);
  made.prepare_payload();
  return made;
}

ResponseHead head_of(const http::response_header<>& header) {
  ResponseHead head;
  head.status = header.result_int();
  for (const auto& field : header)
    head.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  return head;
}

bool is_protocol_error(const beast::error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_version).category();
}

}  // namespace

Exchange::Exchange(Shared& shared, HttpRequest request, std::shared_ptr<ExchangeHandler> handler,
                   std::uint64_t started_ns)
    : shared_(shared),
      request_(make_request(shared.address, std::move(request))),
      handler_(std::move(handler)),
      total_(shared.io) {
  end_.started_ns = started_ns;
}

void Exchange::run() {
  shared_.running.insert(shared_from_this());
  arm_total_timeout();
  if (shared_.idle.empty()) return connect();
  connection_ = std::move(shared_.idle.back());
  shared_.idle.pop_back();
  end_.reused_connection = true;
  end_.connected_ns = platform::monotonic_ns();
  shared_.exchanges_on_reused.fetch_add(1, std::memory_order_relaxed);
  write();
}

void Exchange::arm_total_timeout() {
  total_.expires_after(shared_.options.total_timeout);
  total_.async_wait([self = shared_from_this()](const beast::error_code& error) {
    if (error || self->ended_) return;
    self->cut_ = Failure::timeout;
    self->connection_->stream.close();
  });
}

void Exchange::cancel() {
  cut_ = Failure::cancelled;
  connection_->stream.close();  // the operation that waits ends with an error
}

void Exchange::connect() {
  connection_ = std::make_unique<Connection>(shared_.io);
  connection_->stream.expires_after(shared_.options.connect_timeout);
  connection_->stream.async_connect(
      shared_.endpoints, [self = shared_from_this()](const beast::error_code& error, const auto&) {
        if (error || self->cut_ != Failure::none) return self->on_failure(error, "connect");
        self->end_.connected_ns = platform::monotonic_ns();
        self->shared_.connections_opened.fetch_add(1, std::memory_order_relaxed);
        beast::error_code ignored;  // a Unix socket has no such option
        self->connection_->stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
        self->write();
      });
}

void Exchange::write() {
  connection_->stream.expires_after(shared_.options.idle_timeout);
  http::async_write(connection_->stream, request_,
                    [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                      // A server that refuses a body may answer before it has read all of it: look for its answer
                      // whatever the write said.
                      if (error == beast::error::timeout || self->cut_ != Failure::none)
                        return self->on_failure(error, "send to");
                      self->read_head();
                    });
}

void Exchange::read_head() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.options.header_bytes_max));
  parser_->body_limit(boost::none);
  connection_->stream.expires_after(shared_.options.idle_timeout);
  http::async_read_header(connection_->stream, connection_->buffer, *parser_,
                          [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                            if (error || self->cut_ != Failure::none)
                              return self->on_failure(error, "read the response of");
                            self->handler_->on_head(head_of(self->parser_->get().base()), platform::monotonic_ns());
                            self->read_body();
                          });
}

void Exchange::read_body() {
  if (parser_->is_done()) {
    if (parser_->keep_alive() && connection_->buffer.size() == 0) shared_.idle.push_back(std::move(connection_));
    return finish(Failure::none, {});
  }
  auto& body = parser_->get().body();
  body.data = piece_.data();
  body.size = piece_.size();
  connection_->stream.expires_after(shared_.options.idle_timeout);
  http::async_read_some(connection_->stream, connection_->buffer, *parser_,
                        [self = shared_from_this()](beast::error_code error, std::size_t) {
                          const std::uint64_t ns = platform::monotonic_ns();
                          if (error == http::error::need_buffer) error = {};
                          const std::size_t bytes = self->piece_.size() - self->parser_->get().body().size;
                          if (bytes > 0) self->handler_->on_body(std::string_view(self->piece_.data(), bytes), ns);
                          if (error || self->cut_ != Failure::none)
                            return self->on_failure(error, "read the response of");
                          self->read_body();
                        });
}

bool Exchange::try_again(const beast::error_code& error) {
  const bool nothing_came = !parser_ || !parser_->got_some();
  if (!end_.reused_connection || !nothing_came || cut_ != Failure::none || error == beast::error::timeout) return false;
  shared_.retries.fetch_add(1, std::memory_order_relaxed);
  end_.reused_connection = false;
  end_.connected_ns = 0;
  parser_.reset();
  connect();
  return true;
}

void Exchange::on_failure(const beast::error_code& error, const char* doing) {
  if (cut_ == Failure::cancelled)
    return finish(Failure::cancelled, fmt::format("the request to {} was cancelled", shared_.address.text()));
  if (cut_ == Failure::timeout || error == beast::error::timeout) {
    return finish(Failure::timeout, fmt::format("cannot {} {}: time is out", doing, shared_.address.text()));
  }
  if (end_.connected_ns == 0) return finish(Failure::connect, describe(error, "connect to"));
  if (try_again(error)) return;
  if (error == http::error::header_limit) return finish(Failure::too_large, describe(error, doing));
  const bool cut_short = error == http::error::end_of_stream || error == http::error::partial_message;
  finish(is_protocol_error(error) && !cut_short ? Failure::protocol : Failure::closed, describe(error, doing));
}

std::string Exchange::describe(const beast::error_code& error, const char* doing) const {
  const bool cut_short = error == http::error::end_of_stream || error == http::error::partial_message;
  return fmt::format("cannot {} {}: {}", doing, shared_.address.text(),
                     cut_short ? "the connection was closed early" : error.message());
}

void Exchange::finish(Failure failure, std::string message) {
  ended_ = true;
  total_.cancel();
  end_.failure = failure;
  end_.message = std::move(message);
  end_.ended_ns = platform::monotonic_ns();
  const std::shared_ptr<Exchange> self = shared_from_this();  // outlives the set's hold on it
  shared_.running.erase(self);
  handler_->on_end(end_);
}

}  // namespace kvasir::client
