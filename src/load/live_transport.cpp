#include "load/live_transport.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>

#include "platform/clock.hpp"

namespace kvasir::load {
namespace {

constexpr std::size_t kErrorBytesMax = 4096;  // of the body of a refusal

// "error.message" of the usual body, else its first bytes.
std::string refusal_text(const std::string& body) {
  const nlohmann::json parsed = nlohmann::json::parse(body, nullptr, false);
  if (parsed.is_object() && parsed.contains("error")) {
    const nlohmann::json& error = parsed["error"];
    if (error.is_string()) return error.get<std::string>();
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      return error["message"].get<std::string>();
  }
  return body.substr(0, 200);
}

}  // namespace

// Outcomes on their way from the client's thread to the generator's.
struct LiveTransport::Inbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<Outcome> outcomes;

  void put(Outcome outcome) {
    {
      const std::lock_guard lock(mutex);
      outcomes.push_back(std::move(outcome));
    }
    arrived.notify_one();
  }

  // One exchange.
  class Reader final : public client::ExchangeHandler {
   public:
    Reader(std::shared_ptr<Inbox> inbox, std::uint64_t id, client::Api api)
        : inbox_(std::move(inbox)), id_(id), stream_(api) {}

    void on_head(const client::ResponseHead& head, std::uint64_t) override { status_ = head.status; }

    void on_body(std::string_view bytes, std::uint64_t ns) override {
      if (status_ == 200) return stream_.feed(bytes, ns);
      refusal_ += bytes.substr(0, kErrorBytesMax - std::min(kErrorBytesMax, refusal_.size()));
    }

    void on_end(const client::ExchangeEnd& end) override {
      Outcome outcome;
      outcome.id = id_;
      outcome.ended_ns = end.ended_ns;
      if (status_ == 200) stream_.finish();
      outcome.answer = stream_.take();
      judge(end, outcome);
      inbox_->put(std::move(outcome));
    }

   private:
    void judge(const client::ExchangeEnd& end, Outcome& outcome) const {
      if (end.failure != client::Failure::none) {
        outcome.error_kind = client::name_of(end.failure);
        outcome.error_message = end.message;
      } else if (status_ != 200) {
        outcome.error_kind = fmt::format("http_{}", status_);
        outcome.error_message = refusal_text(refusal_);
      } else if (!outcome.answer.error.empty()) {
        outcome.error_kind = "stream";
        outcome.error_message = outcome.answer.error;
      } else if (outcome.answer.token_ns.empty()) {
        outcome.error_kind = "no_token";
        outcome.error_message = "the answer ended without a token";
      }
    }

    std::shared_ptr<Inbox> inbox_;
    std::uint64_t id_;
    client::AnswerStream stream_;
    unsigned status_ = 0;
    std::string refusal_;
  };
};

LiveTransport::LiveTransport(client::HttpClient& client, LiveOptions options)
    : client_(client), options_(std::move(options)), inbox_(std::make_shared<Inbox>()) {}

LiveTransport::~LiveTransport() = default;

std::uint64_t LiveTransport::now_ns() { return platform::monotonic_ns(); }

void LiveTransport::send(std::uint64_t id, std::string body) {
  client::HttpRequest request{
      .method = "POST", .target = options_.target, .headers = options_.headers, .body = std::move(body)};
  request.headers.push_back({"Content-Type", "application/json"});
  request.headers.push_back({"Accept", "text/event-stream"});
  client_.start(std::move(request), std::make_shared<Inbox::Reader>(inbox_, id, options_.api));
}

void LiveTransport::wait(std::uint64_t until_ns, std::vector<Outcome>& ended) {
  const std::uint64_t now = platform::monotonic_ns();
  const auto left = std::chrono::nanoseconds(until_ns > now ? until_ns - now : 0);
  std::unique_lock lock(inbox_->mutex);
  inbox_->arrived.wait_for(lock, left, [&] { return !inbox_->outcomes.empty(); });
  std::move(inbox_->outcomes.begin(), inbox_->outcomes.end(), std::back_inserter(ended));
  inbox_->outcomes.clear();
}

void LiveTransport::cancel_all() { client_.cancel_all(); }

}  // namespace kvasir::load
