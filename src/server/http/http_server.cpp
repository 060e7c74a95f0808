#include "server/http/http_server.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/http/listener.hpp"
#include "server/http/loop.hpp"

namespace kvasir::server {

struct HttpServer::State {
  State(HttpConfig config, HttpHandler& handler) : context(std::move(config), handler) {}

  Status open();
  void watch_signals();
  // Stops listening, then ends every loop: within the grace period, or now.
  void end(std::optional<std::uint64_t> grace_ms);
  std::vector<Loop*> loop_pointers() const;

  ServerContext context;
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::optional<boost::asio::signal_set> signals;
  int signal_count = 0;
  std::uint16_t port = 0;
  std::mutex join_mutex;
};

std::vector<Loop*> HttpServer::State::loop_pointers() const {
  std::vector<Loop*> pointers;
  for (const auto& loop : loops) pointers.push_back(loop.get());
  return pointers;
}

Status HttpServer::State::open() {
  const HttpConfig& config = context.config;
  for (std::uint32_t i = 0; i < config.io_threads; ++i) loops.push_back(std::make_unique<Loop>(context));
  if (!config.host.empty()) {
    KV_ASSIGN(auto listener, Listener::tcp(context, loop_pointers(), config.host, config.port));
    port = listener->port();
    listeners.push_back(std::move(listener));
  }
  if (!config.unix_socket.empty()) {
    KV_ASSIGN(auto listener, Listener::unix_socket(context, loop_pointers(), config.unix_socket));
    listeners.push_back(std::move(listener));
  }
  for (const auto& listener : listeners) listener->start();
  if (config.on_signal) {
    signals.emplace(loops[0]->context());
    boost::system::error_code ignored;   // fails for numbers that are no signals alone
    signals->add(SIGINT, ignored);
    signals->add(SIGTERM, ignored);
    watch_signals();
  }
  for (const auto& loop : loops) loop->start();
  return ok_status();
}

void HttpServer::State::watch_signals() {
  signals->async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    watch_signals();   // before the callback, which may throw
    context.config.on_signal(signal, ++signal_count);
  });
}

// Listeners run on the first loop: what it does after closing them comes after every accepted connection.
void HttpServer::State::end(std::optional<std::uint64_t> grace_ms) {
  context.draining = true;
  boost::asio::post(loops[0]->context(), [this, grace_ms] {
    for (const auto& listener : listeners) listener->close();
    for (const auto& loop : loops) {
      if (grace_ms) loop->drain(*grace_ms);
      else loop->stop();
    }
  });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::create(HttpConfig config, HttpHandler& handler) {
  KV_TRY(validate(config));
  auto state = std::make_unique<State>(std::move(config), handler);
  KV_TRY(state->open());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() {
  stop();
  wait();
}

std::uint16_t HttpServer::port() const { return state_->port; }

std::string HttpServer::url() const {
  const HttpConfig& config = state_->context.config;
  if (config.host.empty()) return "unix:" + config.unix_socket;
  if (config.host.find(':') != std::string::npos) return fmt::format("http://[{}]:{}", config.host, state_->port);
  return fmt::format("http://{}:{}", config.host, state_->port);
}

void HttpServer::drain(std::uint64_t grace_ms) { state_->end(grace_ms); }
void HttpServer::stop() { state_->end(std::nullopt); }

void HttpServer::hold_output() {
  for (const auto& loop : state_->loops) loop->wake_list()->hold();
}

void HttpServer::release_output() {
  for (const auto& loop : state_->loops) loop->wake_list()->release();
}

void HttpServer::wait() {
  const std::lock_guard lock(state_->join_mutex);
  for (const auto& loop : state_->loops) loop->join();
}

bool HttpServer::draining() const { return state_->context.draining; }

HttpStats HttpServer::stats() const { return state_->context.stats(); }

}  // namespace kvasir::server
