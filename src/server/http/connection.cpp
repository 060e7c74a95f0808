// A connection's life and its reading half; connection_output.cpp has the writing half.
#include "server/http/connection.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <exception>
#include <utility>

#include "platform/clock.hpp"
#include "server/http/request_id.hpp"

namespace kvasir::server {
namespace {

namespace asio = boost::asio;
using SystemError = boost::system::error_code;

constexpr std::uint64_t kLingerBytesMax = 1 << 20;
constexpr std::size_t kPathRecordMax = 256;   // of a path, in the access log

std::string name_of_peer(const Socket& socket) {
  SystemError error;
  const auto generic = socket.remote_endpoint(error);
  asio::ip::tcp::endpoint tcp;
  if (error || generic.size() > tcp.capacity()) return "unknown";
  std::memcpy(tcp.data(), generic.data(), generic.size());
  const std::string address = tcp.address().to_string(error);
  return tcp.address().is_v6() ? fmt::format("[{}]:{}", address, tcp.port()) : fmt::format("{}:{}", address, tcp.port());
}

}  // namespace

Connection::Connection(Loop& loop, Socket socket, bool unix_socket)
    : loop_(loop), server_(loop.server()), socket_(std::move(socket)), unix_socket_(unix_socket) {}

Connection::~Connection() { ServerContext::take(server_.buffered_bytes, charged_bytes_); }

void Connection::start() {
  SystemError ignored;   // a socket that died already shows it at the first read
  socket_.non_blocking(true, ignored);
  if (!unix_socket_) {
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  }
  peer_ = unix_socket_ ? "unix" : name_of_peer(socket_);
  become_idle();
  arm_read();
}

void Connection::become_idle() {
  phase_ = Phase::idle;
  deadline_ms_ = loop_.deadline(server_.config.idle_timeout_ms);
  std::string().swap(out_);
  if (pending_.empty()) std::string().swap(pending_);
}

void Connection::begin_drain() {
  if (exchange_) return exchange_->close_after();
  if (phase_ == Phase::idle || phase_ == Phase::lingering) close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  SystemError ignored;
  socket_.close(ignored);   // cancels the waits
  parser_.reset();
  loop_.remove(*this);
}

void Connection::lose(DisconnectReason reason) {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();
  const std::shared_ptr<Exchange> exchange = exchange_;
  if (reason == DisconnectReason::slow_reader || reason == DisconnectReason::stalled || reason == DisconnectReason::flooded) {
    SystemError ignored;   // a reset: what the kernel still holds for a peer that does not read is freed now
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  }
  if (exchange) {
    record(reason);
    exchange_.reset();
  }
  close();
  if (exchange) exchange->lose(reason);
}

void Connection::check_deadlines() {
  const std::uint64_t now = loop_.now_ms();
  check_output(now);
  if (phase_ == Phase::closed || deadline_ms_ == 0 || now < deadline_ms_) return;
  deadline_ms_ = 0;
  if (phase_ == Phase::idle || phase_ == Phase::lingering) return close();
  if (phase_ != Phase::head && phase_ != Phase::body) return;
  const bool head = phase_ == Phase::head;
  refuse(408, {.message = fmt::format("The request {} did not arrive within {} = {} ms.", head ? "head" : "body",
                                      head ? "header_timeout_ms" : "body_timeout_ms",
                                      head ? server_.config.header_timeout_ms : server_.config.body_timeout_ms),
               .param = std::nullopt, .code = "request_timeout"});
  drive();
}

void Connection::arm_read() {
  if (read_armed_ || input_ended_ || phase_ == Phase::closed) return;
  read_armed_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const SystemError& error) {
    self->read_armed_ = false;
    if (!error && self->phase_ != Phase::closed) self->on_readable();
  });
}

void Connection::on_readable() {
  SystemError error;
  const auto scratch = loop_.scratch();
  const std::size_t bytes = socket_.read_some(asio::buffer(scratch.data(), scratch.size()), error);
  if (error == asio::error::eof) {
    on_end_of_input();
  } else if (error && error != asio::error::would_block && error != asio::error::try_again) {
    return lose(DisconnectReason::peer_closed);
  } else if (!error) {
    ServerContext::add(server_.received_bytes, bytes);
    on_bytes({scratch.data(), bytes});
  }
  arm_read();
}

void Connection::on_bytes(std::string_view bytes) {
  if (phase_ == Phase::lingering) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > kLingerBytesMax) close();
    return;
  }
  pending_ += bytes;
  const bool waits = exchange_ || out_sent_ < out_.size();
  if (waits && pending_.size() > server_.config.max_pipelined_bytes) return lose(DisconnectReason::flooded);
  drive();
}

// Nothing more will come. An answer that is complete still goes out, and so do those to requests that came before; one
// that is still being computed has lost its reader.
void Connection::on_end_of_input() {
  input_ended_ = true;
  if (phase_ == Phase::lingering || (!exchange_ && pending_.empty())) return close();
  if (exchange_ && !exchange_->complete()) return lose(DisconnectReason::peer_closed);
  drive();
}

// True if there is something to send or to wait for by another way than reading.
bool Connection::parse_next() {
  if (pending_.empty() && !parser_) return false;   // a request without a body is complete after its last byte
  if (!parser_) {
    const HttpConfig& config = server_.config;
    parser_ = std::make_unique<RequestParser>(RequestParser::Limits{.header_bytes = config.max_header_bytes,
                                                                    .header_count = config.max_header_count,
                                                                    .body_bytes = config.max_body_bytes});
    phase_ = Phase::head;
    deadline_ms_ = loop_.deadline(config.header_timeout_ms);
  }
  std::size_t consumed = 0;
  const RequestParser::Event event = parser_->feed(pending_, consumed);
  pending_.erase(0, consumed);
  switch (event) {
    case RequestParser::Event::failed: refuse(parser_->failure().status, parser_->failure().error); return true;
    case RequestParser::Event::head: on_head(); break;
    case RequestParser::Event::complete: dispatch(); return true;
    case RequestParser::Event::need_more: break;
  }
  if (phase_ != Phase::answering && !within_buffer_budget()) {
    refuse(503, {.message = fmt::format("The server holds max_buffered_bytes = {} of unfinished requests already.",
                                        server_.config.max_buffered_bytes),
                 .type = "server_error", .param = std::nullopt, .code = "server_is_overloaded"},
           {{"Retry-After", "1"}});
    return true;
  }
  if (event == RequestParser::Event::need_more && input_ended_) close();
  return event == RequestParser::Event::head;
}

bool Connection::within_buffer_budget() {
  const std::uint64_t held = pending_.size() + (parser_ ? parser_->request().body.size() : 0);
  if (held >= charged_bytes_) ServerContext::add(server_.buffered_bytes, held - charged_bytes_);
  if (held < charged_bytes_) ServerContext::take(server_.buffered_bytes, charged_bytes_ - held);
  charged_bytes_ = held;
  return server_.buffered_bytes.load(std::memory_order_relaxed) <= server_.config.max_buffered_bytes;
}

void Connection::on_head() {
  HttpRequest& request = parser_->request();
  request.peer = peer_;
  request.unix_socket = unix_socket_;
  const std::string* id = find_header(request.headers, "x-request-id");
  request.id = id != nullptr && valid_request_id(*id) ? *id : make_request_id();

  std::optional<HttpResponse> refusal;
  try {
    refusal = server_.handler.screen(request);
  } catch (const std::exception& error) {
    server_.warn(fmt::format("the handler threw while it looked at a request: {}", error.what()));
    refusal = error_response(500, {.message = "The server failed on this request.", .type = "server_error",
                                   .param = std::nullopt, .code = "internal_error"});
  }
  if (refusal) {
    ServerContext::add(server_.screened);
    return answer(*refusal, !parser_->has_body() && parser_->keep_alive());
  }
  phase_ = Phase::body;
  deadline_ms_ = loop_.deadline(server_.config.body_timeout_ms);
  if (parser_->expects_continue() && pending_.empty()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void Connection::open_exchange(bool keep_alive) {
  const HttpRequest& request = parser_->request();
  phase_ = Phase::answering;
  deadline_ms_ = 0;
  method_ = request.method;
  path_ = request.path.substr(0, kPathRecordMax);
  id_ = request.id.empty() ? make_request_id() : request.id;
  begun_ns_ = platform::monotonic_ns();
  exchange_bytes_ = 0;
  last_output_ms_ = loop_.now_ms();
  exchange_ = std::make_shared<Exchange>(
      Exchange::Traits{.http11 = parser_->http11(), .keep_alive = keep_alive && !server_.draining,
                       .head_only = method_ == "HEAD", .id = id_, .max_queued_bytes = server_.config.max_queued_bytes},
      [wakes = loop_.wake_list(), weak = weak_from_this()] { wakes->post(weak); });
  ServerContext::add(server_.active_requests);
  ServerContext::take(server_.buffered_bytes, std::exchange(charged_bytes_, 0));
}

void Connection::answer(const HttpResponse& response, bool keep_alive) {
  open_exchange(keep_alive);
  parser_.reset();
  exchange_->send(response.status, response.headers, response.content_type, response.body);
}

void Connection::refuse(int status, const HttpError& error, HeaderFields headers) {
  ServerContext::add(server_.bad_requests);
  pending_.clear();   // nothing after it can be trusted
  answer(error_response(status, error, std::move(headers)), false);
}

void Connection::dispatch() {
  open_exchange(parser_->keep_alive());
  ServerContext::add(server_.requests);
  HttpRequest request = std::move(parser_->request());
  parser_.reset();
  request.arrived_ns = begun_ns_;
  const std::shared_ptr<Exchange> exchange = exchange_;
  try {
    server_.handler.handle(std::move(request), Exchange::responder(exchange));
  } catch (const std::exception& error) {
    server_.warn(fmt::format("the handler threw on request {}: {}", id_, error.what()));
  }   // the responder it let go of answers 500
  if (input_ended_ && !exchange->complete()) lose(DisconnectReason::peer_closed);
}

}  // namespace kvasir::server
