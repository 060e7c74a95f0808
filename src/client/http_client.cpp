#include "client/http_client.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "client/exchange.hpp"
#include "platform/clock.hpp"

namespace kvasir::client {
namespace {

// Collects a whole response.
class Collector final : public ExchangeHandler {
 public:
  explicit Collector(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void on_head(const ResponseHead& head, std::uint64_t) override { response_.head = head; }
  void on_body(std::string_view bytes, std::uint64_t) override {
    overflow_ = overflow_ || bytes.size() > bytes_max_ - response_.body.size();
    if (!overflow_) response_.body += bytes;
  }
  void on_end(const ExchangeEnd& end) override {
    if (end.failure != Failure::none) return promise_.set_value(Error{ErrorCode::io, end.message});
    if (overflow_)
      return promise_.set_value(Error{ErrorCode::io, fmt::format("the response has more than {} bytes", bytes_max_)});
    promise_.set_value(std::move(response_));
  }

  std::future<Result<HttpResponse>> result() { return promise_.get_future(); }

 private:
  std::size_t bytes_max_;
  HttpResponse response_;
  bool overflow_ = false;
  std::promise<Result<HttpResponse>> promise_;
};

Status resolve(Shared& shared) {
  const Address& address = shared.address;
  if (!address.unix_path.empty()) {
    shared.endpoints.emplace_back(asio::local::stream_protocol::endpoint(address.unix_path));
    return ok_status();
  }
  beast::error_code error;
  asio::ip::tcp::resolver resolver(shared.io);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), asio::ip::tcp::resolver::numeric_service, error);
  if (error) return Error{ErrorCode::io, fmt::format("cannot find the host '{}': {}", address.host, error.message())};
  for (const auto& entry : found) shared.endpoints.emplace_back(entry.endpoint());
  return ok_status();
}

}  // namespace

struct HttpClient::State {
  Shared shared;
  asio::executor_work_guard<asio::io_context::executor_type> work{shared.io.get_executor()};
  std::thread thread;

  void cancel_all() {
    for (const std::shared_ptr<Exchange>& exchange :
         std::vector<std::shared_ptr<Exchange>>(shared.running.begin(), shared.running.end())) {
      exchange->cancel();
    }
  }
};

Result<std::unique_ptr<HttpClient>> HttpClient::create(const Address& address, const ClientOptions& options) {
  auto state = std::make_unique<State>();
  state->shared.address = address;
  state->shared.options = options;
  KV_TRY(resolve(state->shared));
  state->thread = std::thread([&io = state->shared.io] { io.run(); });
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpClient::~HttpClient() {
  asio::post(state_->shared.io, [state = state_.get()] {
    state->cancel_all();
    state->shared.idle.clear();
    state->work.reset();
  });
  state_->thread.join();
  state_->shared.idle.clear();  // put back by an exchange that ended well meanwhile
}

void HttpClient::start(HttpRequest request, std::shared_ptr<ExchangeHandler> handler) {
  const std::uint64_t started_ns = platform::monotonic_ns();
  asio::post(state_->shared.io,
             [state = state_.get(), request = std::move(request), handler = std::move(handler), started_ns]() mutable {
               std::make_shared<Exchange>(state->shared, std::move(request), std::move(handler), started_ns)->run();
             });
}

void HttpClient::cancel_all() {
  asio::post(state_->shared.io, [state = state_.get()] { state->cancel_all(); });
}

Result<HttpResponse> HttpClient::fetch(HttpRequest request) {
  auto collector = std::make_shared<Collector>(state_->shared.options.fetch_bytes_max);
  std::future<Result<HttpResponse>> result = collector->result();
  start(std::move(request), collector);
  return result.get();
}

ClientCounters HttpClient::counters() const {
  const Shared& shared = state_->shared;
  return {shared.connections_opened.load(std::memory_order_relaxed),
          shared.exchanges_on_reused.load(std::memory_order_relaxed), shared.retries.load(std::memory_order_relaxed)};
}

}  // namespace kvasir::client
