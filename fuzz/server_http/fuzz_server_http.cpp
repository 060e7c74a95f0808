// Drives the HTTP request parser, the target decoder and the route table.
//
// Input: one byte that says how the rest is cut into reads, then the bytes of a connection. What must hold whatever they
// are:
//   - no more is consumed than was given, and what is held stays within the limits;
//   - the requests that are served do not depend on the cuts (a refusal may come later in pieces);
//   - a request that is complete has a decoded path without NUL, and the router answers it exactly once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "server/http/request_parser.hpp"
#include "server/http/router.hpp"

namespace {

using namespace kvasir;
using server::RequestParser;

constexpr RequestParser::Limits kLimits = {.header_bytes = 2048, .header_count = 20, .body_bytes = 4096};

class CountingResponder final : public server::Responder {
 public:
  void add_header(std::string, std::string) override {}
  bool send(int status, const server::HeaderFields&, std::string_view, std::string_view) override {
    KV_CHECK(status >= 200 && status < 600, "a final status");
    ++answers;
    return true;
  }
  bool begin_stream(int, const server::HeaderFields&, std::string_view) override { return false; }
  bool write(std::string_view) override { return false; }
  bool end() override { return false; }
  void abort() override {}
  void on_disconnect(DisconnectCallback) override {}
  std::size_t queued_bytes() const override { return 0; }
  bool gone() const override { return false; }
  int answers = 0;
};

server::Router& router() {
  static const std::unique_ptr<server::Router> kRouter = [] {
    const server::RouteHandler ok = [](const server::HttpRequest&, const server::ResponderPtr& responder) {
      responder->send(200, {}, "text/plain", "ok");
    };
    server::RouterConfig config;
    KV_CHECK(config.keys.add("acme key-of-acme\n", "the fuzzer").ok(), "the key is valid");
    config.cors_origins = {"https://ui"};
    return server::Router::create({{"GET", "/", server::Access::open, ok},
                                   {"POST", "/v1/{a}/b", server::Access::user, ok},
                                   {"GET", "/v1/models/{id...}", server::Access::user, ok}}, std::move(config)).value();
  }();
  return *kRouter;
}

void check_complete(const server::HttpRequest& request) {
  KV_CHECK(request.body.size() <= kLimits.body_bytes, "the body's limit");
  KV_CHECK(request.headers.size() <= kLimits.header_count, "the limit of fields");
  KV_CHECK(request.path.find('\0') == std::string::npos, "no NUL in a path");
  KV_CHECK(request.path == "*" || request.path.starts_with('/'), "a path is absolute");
  const auto responder = std::make_shared<CountingResponder>();
  router().screen(request);
  router().handle(request, responder);
  KV_CHECK(responder->answers == 1, "one answer");
}

// The requests that a reader sees in `bytes` that come `step` at a time.
std::string transcript(std::string_view bytes, std::size_t step) {
  std::string seen, pending;
  auto parser = std::make_unique<RequestParser>(kLimits);
  while (!bytes.empty()) {
    pending += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (auto event = RequestParser::Event::head; event != RequestParser::Event::need_more;) {
      std::size_t consumed = 0;
      event = parser->feed(pending, consumed);
      KV_CHECK(consumed <= pending.size(), "no more is consumed than was given");
      pending.erase(0, consumed);
      if (event == RequestParser::Event::failed) return seen;
      if (event != RequestParser::Event::complete) continue;
      check_complete(parser->request());
      seen += parser->request().method + parser->request().path + "|" + parser->request().body + "\n";
      parser = std::make_unique<RequestParser>(kLimits);
    }
    KV_CHECK(pending.size() <= 2 * kLimits.header_bytes + step, "what waits is bounded");
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = data[0] % 16 + 1u;
  KV_CHECK(transcript(bytes, step) == transcript(bytes, bytes.size()), "the same whole or in pieces");
  return 0;
}
