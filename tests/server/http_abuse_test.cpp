// The server against clients that are slow, gone, malformed or greedy. After each the next good request is served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/prng.hpp"
#include "http_support.hpp"
#include "platform/descriptors.hpp"

namespace kvasir::server {
namespace {

using testing::HasSubstr;

// Holds requests unanswered and remembers why each was lost.
struct Holding {
  void operator()(const HttpRequest& request, ResponderPtr responder) {
    if (request.path == "/alive") return answer_ok(request, responder);
    if (request.path == "/stream") responder->begin_stream(200, {}, "text/event-stream");
    if (request.path == "/stream") responder->write("data: first\n\n");
    responder->on_disconnect([this](DisconnectReason reason) {
      const std::lock_guard lock(mutex);
      reasons.push_back(reason);
    });
    const std::lock_guard lock(mutex);
    held.push_back(std::move(responder));
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return held.size();
  }
  std::vector<DisconnectReason> lost() {
    const std::lock_guard lock(mutex);
    return reasons;
  }
  std::mutex mutex;
  std::vector<ResponderPtr> held;
  std::vector<DisconnectReason> reasons;
};

TEST(HttpAbuse, HangingUpBeforeTheFirstByteIsNoticed) {
  Holding holding;
  TestServer server(std::ref(holding));
  for (const bool half : {false, true}) {
    const std::size_t before = holding.lost().size();
    RawClient client = server.client();
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    ASSERT_TRUE(eventually([&] { return holding.count() == before + 1; }));
    half ? client.half_close() : client.close();
    ASSERT_TRUE(eventually([&] { return holding.lost().size() == before + 1; }));
    EXPECT_EQ(holding.lost().back(), DisconnectReason::peer_closed);
    EXPECT_TRUE(holding.held.back()->gone());
    EXPECT_FALSE(holding.held.back()->send(200, {}, "text/plain", "late"));
  }
  EXPECT_EQ(server.http->stats().lost, 2u);
  EXPECT_EQ(server.http->stats().active_requests, 0u);
  server.expect_alive();
}

TEST(HttpAbuse, HangingUpInTheMiddleOfAStreamIsNoticed) {
  Holding holding;
  TestServer server(std::ref(holding));
  RawClient client = server.client();
  client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("first\n\n"), HasSubstr("data: first"));
  client.close();
  ASSERT_TRUE(eventually([&] { return holding.lost().size() == 1; }));
  EXPECT_FALSE(holding.held[0]->write("data: second\n\n"));
  EXPECT_FALSE(holding.held[0]->end());
  server.expect_alive();
}

TEST(HttpAbuse, ACallbackRegisteredTooLateIsCalledAtOnce) {
  Holding holding;
  TestServer server(std::ref(holding));
  { server.client().send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); }
  ASSERT_TRUE(eventually([&] { return holding.lost().size() == 1; }));
  bool told = false;
  holding.held[0]->on_disconnect([&](DisconnectReason reason) { told = reason == DisconnectReason::peer_closed; });
  EXPECT_TRUE(told);
}

TEST(HttpAbuse, ACompleteAnswerIsNoDisconnect) {
  std::atomic<int> told = 0;
  TestServer server([&](const HttpRequest& request, const ResponderPtr& responder) {
    responder->on_disconnect([&](DisconnectReason) { ++told; });
    answer_ok(request, responder);
  });
  {
    RawClient client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    client.half_close();   // the answer was complete at once: it still arrives
    EXPECT_EQ(client.response().body, "ok");
    EXPECT_TRUE(client.closed_by_peer());
  }
  ASSERT_TRUE(eventually([&] { return server.http->stats().open_connections == 0; }));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(server.http->stats().lost, 0u);
}

// Streams until the server says that the peer is gone; the reason is what the callback got.
DisconnectReason outpace(HttpConfig config, std::size_t pieces_max) {
  std::atomic<int> reason = -1;
  std::atomic<bool> refused = false;
  std::vector<std::thread> producers;
  TestServer server([&](const HttpRequest& request, ResponderPtr responder) {
    if (request.path == "/alive") return answer_ok(request, responder);
    producers.emplace_back([&, responder = std::move(responder)] {
      responder->on_disconnect([&](DisconnectReason why) { reason = static_cast<int>(why); });
      responder->begin_stream(200, {}, "text/plain");
      const std::string piece(64 << 10, 'x');
      for (std::size_t i = 0; i < pieces_max && !refused; ++i) refused = !responder->write(piece);
      eventually([&] { return reason >= 0; });
      refused = !responder->write(piece);
      EXPECT_EQ(responder->queued_bytes(), 0u) << "what nobody will read is let go";
    });
  }, config);
  RawClient client = server.client(4096);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return reason >= 0 && refused; }));
  for (std::thread& thread : producers) thread.join();
  EXPECT_EQ(server.http->stats().dropped_slow, 1u);
  server.expect_alive();
  return static_cast<DisconnectReason>(reason.load());
}

TEST(HttpAbuse, AReaderBehindByTooManyBytesIsDropped) {
  HttpConfig config;
  config.max_queued_bytes = 1 << 20;
  EXPECT_EQ(outpace(config, 1 << 20), DisconnectReason::slow_reader);
}

TEST(HttpAbuse, AReaderThatStopsIsDropped) {
  HttpConfig config;
  config.max_queued_bytes = std::uint64_t{1} << 30;
  config.write_stall_ms = 50;
  EXPECT_EQ(outpace(config, 400), DisconnectReason::stalled);
}

TEST(HttpAbuse, SlowHeadsAndBodiesGet408AndSilenceIsClosed) {
  HttpConfig config;
  config.header_timeout_ms = config.body_timeout_ms = config.idle_timeout_ms = 60;
  TestServer server(answer_ok, config);
  RawClient head = server.client(), body = server.client(), silent = server.client();
  head.send("GET / HTTP/1.1\r\nHo");
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nslow");
  for (RawClient* client : {&head, &body}) {
    const RawResponse response = client->response();
    EXPECT_EQ(response.status, 408);
    EXPECT_EQ(nlohmann::json::parse(response.body)["error"]["code"], "request_timeout");
    EXPECT_TRUE(client->closed_by_peer());
  }
  EXPECT_TRUE(silent.closed_by_peer());
  server.expect_alive();
}

TEST(HttpAbuse, ByteByByteDoesNotExtendTheTimeOfAHead) {
  HttpConfig config;
  config.header_timeout_ms = 60;
  TestServer server(answer_ok, config);
  RawClient client = server.client();
  std::thread dripping([&] {
    client.send("GET / HTTP/1.1\r\n");
    while (client.send("X: y\r\n")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_TRUE(eventually([&] { return server.http->stats().bad_requests == 1; }));
  EXPECT_TRUE(eventually([&] { return server.http->stats().open_connections == 0; }));
  dripping.join();
  server.expect_alive();
}

TEST(HttpAbuse, MalformedRequestsGetAJsonErrorAndTheEnd) {
  HttpConfig config;
  config.max_header_bytes = 2048;
  config.max_header_count = 10;
  config.max_body_bytes = 1000;
  TestServer server(answer_ok, config);
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n", post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  std::string many;
  for (int i = 0; i < 11; ++i) many += "H" + std::to_string(i) + ": 1\r\n";
  const std::vector<std::pair<std::string, int>> cases = {
      {"nonsense\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 400},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},   // a TLS greeting
      {"GET relative HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /?a=%4 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},                           // no Host
      {get + "Host: y\r\n\r\n", 400},
      {get + "Bad Name: 1\r\n\r\n", 400},
      {get + "NoColon\r\n\r\n", 400},
      {get + "A: b\x01\r\n\r\n", 400},
      {get + "A: b\n\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 1, 2\r\n\r\n", 400},
      {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {post + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415},   // not without a body: it encodes nothing
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {post + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {post + "Expect: the-unexpected\r\n\r\n", 417},
      {post + "Content-Length: 1001\r\n\r\n", 413},
      {chunked + "3e9\r\n", 413},
      {chunked + "ffffffffffffffff\r\n", 413},
      {chunked + "12345678901234567\r\n", 400},
      {chunked + "xyz\r\n", 400},
      {chunked + "-1\r\n", 400},
      {chunked + "3\r\nabcXY\r\n", 400},
      {chunked + "0\r\nBad Trailer: 1\r\n\r\n", 400},
      {chunked + "1;" + std::string(3000, 'e'), 431},
      {get + "A: " + std::string(3000, 'a') + "\r\n\r\n", 431},
      {get + std::string(3000, 'a'), 431},
      {"GET /" + std::string(3000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
      {get + many + "\r\n", 431},
  };
  for (const auto& [bytes, status] : cases) {
    RawClient client = server.client();
    client.send(bytes);
    const RawResponse response = client.response();
    EXPECT_EQ(response.status, status) << bytes.substr(0, 120);
    ASSERT_TRUE(nlohmann::json::accept(response.body)) << bytes.substr(0, 120);
    const nlohmann::json error = nlohmann::json::parse(response.body)["error"];
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_TRUE(error["param"].is_null());
    EXPECT_TRUE(error["code"].is_string());
    EXPECT_EQ(response.header("Connection"), "close");
    EXPECT_TRUE(client.closed_by_peer());
  }
  EXPECT_EQ(server.http->stats().bad_requests, cases.size());
  EXPECT_EQ(server.http->stats().requests, 0u);
  server.expect_alive();
}

TEST(HttpAbuse, WhatFollowsTheRequestInProgressIsBounded) {
  Holding holding;
  HttpConfig config;
  config.max_pipelined_bytes = 10'000;
  TestServer server(std::ref(holding), config);
  RawClient client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return holding.count() == 1; }));
  client.send(std::string(100'000, 'G'));
  ASSERT_TRUE(eventually([&] { return holding.lost().size() == 1; }));
  EXPECT_EQ(holding.lost()[0], DisconnectReason::flooded);
  server.expect_alive();
}

TEST(HttpAbuse, UnfinishedBodiesTogetherAreBounded) {
  HttpConfig config;
  config.max_buffered_bytes = 300'000;
  TestServer server(answer_ok, config);
  const std::string part = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + std::string(190'000, 'x');
  RawClient first = server.client(), second = server.client();
  first.send(part);
  ASSERT_TRUE(eventually([&] { return server.http->stats().received_bytes == part.size(); }));
  second.send(part);
  const RawResponse refused = second.response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(nlohmann::json::parse(refused.body)["error"]["code"], "server_is_overloaded");
  first.send(std::string(10'000, 'x'));
  EXPECT_EQ(first.response().status, 200);
  server.expect_alive();
}

TEST(HttpAbuse, ConnectionsOverTheLimitAreToldSo) {
  HttpConfig config;
  config.max_connections = 2;
  TestServer server(answer_ok, config);
  {
    RawClient first = server.client(), second = server.client();
    EXPECT_EQ(first.get("/").status, 200);
    EXPECT_EQ(second.get("/").status, 200);
    RawClient third = server.client();
    const RawResponse refused = third.response();
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.complete);
    EXPECT_EQ(server.http->stats().refused_connections, 1u);
    EXPECT_EQ(first.get("/").status, 200);
  }
  ASSERT_TRUE(eventually([&] { return server.http->stats().open_connections == 0; }));
  server.expect_alive();
}

TEST(HttpAbuse, RunningOutOfDescriptorsPausesAndHeals) {
  const auto limit = platform::descriptor_limit().value();
  std::atomic<int> warnings = 0;
  HttpConfig config;
  config.on_warning = [&](const std::string&) { ++warnings; };
  TestServer server(answer_ok, config);
  {
    std::vector<RawClient> clients(8);   // their descriptors are taken before the server can take the last ones
    const std::uint64_t open = platform::open_descriptors().value();
    ASSERT_TRUE(platform::set_descriptor_limit(open + 4).ok());
    for (RawClient& client : clients) client.connect(server.http->port());
    for (RawClient& client : clients) client.send("GET /alive HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return server.http->stats().accept_failures > 0; }));
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const int status = clients[i].response().status;   // as the first are closed, the rest gets in
      const HttpStats stats = server.http->stats();
      EXPECT_EQ(status, 200) << "client " << i << "; accepted " << stats.accepted << ", open " << stats.open_connections
                             << ", requests " << stats.requests << ", accept failures " << stats.accept_failures;
      clients[i].close();
    }
  }
  ASSERT_TRUE(platform::set_descriptor_limit(limit.soft).ok());
  EXPECT_GT(warnings, 0);
  server.expect_alive();
}

TEST(HttpAbuse, RefusesBeforeTheBodyWhenTheHandlerScreens) {
  class Screening : public FunctionHandler {
   public:
    using FunctionHandler::FunctionHandler;
    std::optional<HttpResponse> screen(const HttpRequest& head) override {
      if (head.path != "/secret") return std::nullopt;
      return error_response(401, {.message = "no", .param = std::nullopt, .code = "invalid_api_key"});
    }
  };
  Screening handler(answer_ok);
  HttpConfig config;
  config.port = 0;
  const auto server = HttpServer::create(config, handler).value();
  RawClient client(server->port());
  EXPECT_EQ(client.get("/secret").status, 401);
  EXPECT_EQ(client.get("/").status, 200);   // nothing was left unread, so the connection lives
  client.send("POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\nExpect: 100-continue\r\n\r\n");
  const RawResponse refused = client.response();
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("Connection"), "close");
  EXPECT_EQ(server->stats().screened, 2u);
  EXPECT_EQ(server->stats().requests, 1u);
}

// Bytes that are nearly HTTP get further than noise: half of the inputs are pieces of requests, shuffled and bitten.
std::string garbage(PhiloxSequence& random) {
  constexpr std::string_view kPieces[] = {"GET ", "POST ", "/", " HTTP/1.1", " HTTP/1.0", "\r\n", "\r\n\r\n", "\n", "Host: x",
                                          "Content-Length: 3", "Content-Length: 99999", "Transfer-Encoding: chunked",
                                          "Expect: 100-continue", "Connection: close", "0\r\n\r\n", "5\r\nabc", "%00", "?a=b&",
                                          ": ", "\t", "HEAD ", "OPTIONS * "};
  std::string bytes;
  const std::uint32_t parts = random.below(12) + 1;
  for (std::uint32_t i = 0; i < parts; ++i) {
    if (random.below(2) == 0) {
      bytes += kPieces[random.below(static_cast<std::uint32_t>(std::size(kPieces)))];
    } else {
      for (std::uint32_t n = random.below(20); n > 0; --n) bytes += static_cast<char>(random.below(256));
    }
  }
  if (random.below(4) == 0 && !bytes.empty()) bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<char>(random.below(256));
  return bytes;
}

TEST(HttpAbuse, GarbageNeverHurtsTheNextGoodRequest) {
  PhiloxSequence random(20261130);
  TestServer server(answer_ok);
  RawClient good = server.client();
  for (int i = 0; i < 3000; ++i) {
    {
      RawClient bad = server.client();
      bad.send(garbage(random));
      if (random.below(2) == 0) bad.half_close();
    }
    if (i % 25 == 0) {
      ASSERT_EQ(good.get("/").body, "ok") << "after input " << i;
    }
  }
  EXPECT_TRUE(eventually([&] { return server.http->stats().open_connections == 1; }));
  EXPECT_EQ(server.http->stats().active_requests, 0u);
}

}  // namespace
}  // namespace kvasir::server
