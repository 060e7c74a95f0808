// The server as a well-behaved client sees it: answers, streams, connections that live on, and the end of all that.
#include "server/http/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "http_support.hpp"
#include "platform/descriptors.hpp"
#include "platform/memory.hpp"

namespace kvasir::server {
namespace {

using testing::StartsWith;

TEST(HttpServer, AnswersManyRequestsOnOneConnection) {
  TestServer server([](const HttpRequest& request, const ResponderPtr& responder) {
    responder->send(200, {{"X-Extra", "1"}}, "text/plain", request.method + " " + request.path + " " + request.body);
  });
  RawClient client = server.client();
  for (int i = 0; i < 20; ++i) {
    const RawResponse response = client.post("/echo/" + std::to_string(i), "body " + std::to_string(i));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /echo/" + std::to_string(i) + " body " + std::to_string(i));
    EXPECT_EQ(response.header("X-Extra"), "1");
    EXPECT_EQ(response.header("Content-Type"), "text/plain");
    EXPECT_THAT(response.header("Date"), testing::EndsWith(" GMT"));
  }
  EXPECT_EQ(server.http->stats().accepted, 1u);
  EXPECT_EQ(server.http->stats().requests, 20u);
}

TEST(HttpServer, GivesTheHandlerADecodedRequest) {
  std::mutex mutex;
  HttpRequest seen;
  TestServer server([&](HttpRequest request, const ResponderPtr& responder) {
    {
      const std::lock_guard lock(mutex);
      seen = std::move(request);
    }
    responder->send(200, {}, "text/plain", "ok");
  });
  server.client().get("/v1/models/a%2Fb%20c?limit=2&q=a+b%21&flag", "X-Mixed-Case:  value \r\n");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen.path, "/v1/models/a/b c");
  ASSERT_NE(seen.query_value("limit"), nullptr);
  EXPECT_EQ(*seen.query_value("limit"), "2");
  EXPECT_EQ(*seen.query_value("q"), "a b!");
  EXPECT_EQ(*seen.query_value("flag"), "");
  EXPECT_EQ(seen.query_value("none"), nullptr);
  EXPECT_EQ(*find_header(seen.headers, "x-mixed-case"), "value");
  EXPECT_THAT(seen.peer, StartsWith("127.0.0.1:"));
  EXPECT_FALSE(seen.unix_socket);
  EXPECT_GT(seen.arrived_ns, 0u);
}

TEST(HttpServer, EchoesAGoodRequestIdAndReplacesABadOne) {
  TestServer server(answer_ok);
  EXPECT_EQ(server.client().get("/", "x-request-id: abc-1.2:3\r\n").header("x-request-id"), "abc-1.2:3");
  for (const std::string& bad : std::vector<std::string>{"", "two words", "quote\"", std::string(129, 'a')}) {
    const std::string id = server.client().get("/", "X-Request-Id: " + bad + "\r\n").header("x-request-id");
    EXPECT_EQ(id.size(), 36u) << id;
    EXPECT_THAT(id, StartsWith("req_"));
  }
  EXPECT_NE(server.client().get("/").header("x-request-id"), server.client().get("/").header("x-request-id"));
}

TEST(HttpServer, AnswersHeadWithoutABodyAndKeepsTheConnection) {
  TestServer server(answer_ok);
  RawClient client = server.client();
  client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawResponse head = client.response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "2");
  EXPECT_EQ(client.get("/").body, "ok");
}

TEST(HttpServer, ClosesWhenTheClientAsksOrSpeaksTheOldVersion) {
  TestServer server(answer_ok);
  for (const char* request : {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawClient client = server.client();
    client.send(request);
    const RawResponse response = client.response();
    EXPECT_EQ(response.body, "ok");
    EXPECT_EQ(response.header("Connection"), "close");
    EXPECT_TRUE(client.closed_by_peer());
  }
  RawClient kept = server.client();
  kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.response().header("Connection"), "keep-alive");
  EXPECT_EQ(kept.get("/").status, 200);
}

TEST(HttpServer, StreamsFromAnotherThread) {
  std::vector<std::thread> threads;
  TestServer server([&](HttpRequest, ResponderPtr responder) {
    threads.emplace_back([responder = std::move(responder)] {
      responder->begin_stream(200, {}, "text/event-stream");
      for (int i = 0; i < 500; ++i) EXPECT_TRUE(responder->write("data: " + std::to_string(i) + "\n\n"));
      EXPECT_TRUE(responder->end());
      EXPECT_FALSE(responder->write("data: late\n\n"));
      EXPECT_FALSE(responder->end());
    });
  });
  std::string expected;
  for (int i = 0; i < 500; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  RawClient client = server.client();
  for (int turn = 0; turn < 2; ++turn) {
    const RawResponse response = client.get("/");
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.body, expected);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServer, StreamsToTheOldVersionUntilItCloses) {
  TestServer server([](HttpRequest, const ResponderPtr& responder) {
    responder->begin_stream(200, {}, "text/plain");
    responder->write("one ");
    responder->write("");
    responder->write("two");
    responder->end();
  });
  RawClient client = server.client();
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const RawResponse response = client.response();
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_EQ(response.body, "one two");
  EXPECT_EQ(server.client().get("/").body, "one two");
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  std::mutex mutex;
  std::vector<std::pair<std::string, ResponderPtr>> held;
  TestServer server([&](const HttpRequest& request, ResponderPtr responder) {
    const std::lock_guard lock(mutex);
    held.emplace_back(request.path, std::move(responder));
  });
  RawClient client = server.client();
  std::string requests;
  for (int i = 0; i < 10; ++i) requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(requests);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return held.size() == 1;   // the next is not handed over before this one is answered
    }));
    {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(held[0].first, "/" + std::to_string(i));
      held[0].second->send(200, {}, "text/plain", held[0].first);
      held.clear();
    }
    EXPECT_EQ(client.response().body, "/" + std::to_string(i));
  }
}

TEST(HttpServer, SaysContinueBeforeTheBodyComes) {
  TestServer server([](const HttpRequest& request, const ResponderPtr& responder) {
    responder->send(200, {}, "text/plain", request.body);
  });
  RawClient client = server.client();
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hello");
  EXPECT_EQ(client.response().body, "hello");
}

TEST(HttpServer, ReadsChunkedBodies) {
  TestServer server([](const HttpRequest& request, const ResponderPtr& responder) {
    responder->send(200, {}, "text/plain", request.body + (find_header(request.headers, "x-late") ? " late" : ""));
  });
  RawClient client = server.client();
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.send(head + "5\r\nhello\r\n7;ext=\"1\"\r\n, world\r\n0\r\nX-Late: 1\r\n\r\n");
  EXPECT_EQ(client.response().body, "hello, world");   // a trailer is dropped
  for (const char byte : head + "3\r\nabc\r\n0\r\n\r\n") client.send(std::string(1, byte));
  EXPECT_EQ(client.response().body, "abc");
}

TEST(HttpServer, PingsASilentEventStream) {
  std::mutex mutex;
  ResponderPtr held;
  HttpConfig config;
  config.ping_interval_ms = 20;
  TestServer server([&](HttpRequest, ResponderPtr responder) {
    responder->begin_stream(200, {}, "text/event-stream");
    const std::lock_guard lock(mutex);
    held = std::move(responder);
  }, config);
  RawClient client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.read_until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read_until("\n\n\r\n"), "8\r\n: ping\n\n\r\n");
  const std::lock_guard lock(mutex);
  held->end();
  held.reset();
}

TEST(HttpServer, AHandlerThatForgetsOrThrowsMeans500) {
  TestServer server([](const HttpRequest& request, ResponderPtr responder) {
    if (request.path == "/throw") throw std::runtime_error("out of luck");
    responder.reset();
  });
  RawClient client = server.client();
  for (const char* path : {"/forget", "/throw"}) {
    const RawResponse response = client.get(path);
    EXPECT_EQ(response.status, 500);
    EXPECT_EQ(nlohmann::json::parse(response.body)["error"]["type"], "server_error");
  }
}

TEST(HttpServer, AnAbortedStreamIsVisiblyCut) {
  TestServer server([](const HttpRequest& request, ResponderPtr responder) {
    responder->begin_stream(200, {}, "text/event-stream");
    responder->write("data: {\"error\": {}}\n\n");
    if (request.path == "/abort") responder->abort();
    responder.reset();
  });
  for (const char* path : {"/abort", "/forget"}) {
    const RawResponse response = server.client().get(path);
    EXPECT_EQ(response.body, "data: {\"error\": {}}\n\n");
    EXPECT_FALSE(response.complete);
  }
}

TEST(HttpServer, AHeaderValueCannotStartAnotherField) {
  TestServer server([](HttpRequest, const ResponderPtr& responder) {
    responder->add_header("X-A", "1\r\nX-Forged: yes");
    responder->send(200, {{"bad name", "x"}, {"Content-Length", "999"}}, "text/plain", "ok");
  });
  const RawResponse response = server.client().get("/");
  EXPECT_EQ(response.header("X-A"), "1  X-Forged: yes");
  EXPECT_EQ(response.header("X-Forged"), "");
  EXPECT_EQ(response.head.find("bad name"), std::string::npos);
  EXPECT_EQ(response.body, "ok");
}

TEST(HttpServer, DrainRefusesTheNewFinishesTheOldAndEnds) {
  std::mutex mutex;
  ResponderPtr held;
  TestServer server([&](HttpRequest, ResponderPtr responder) {
    responder->begin_stream(200, {}, "text/plain");
    const std::lock_guard lock(mutex);
    held = std::move(responder);
  });
  RawClient idle = server.client();
  RawClient busy = server.client();
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  busy.read_until("\r\n\r\n");
  server.http->drain(60'000);
  EXPECT_TRUE(server.http->draining());
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_TRUE(eventually([&] { return !server.client().connected(); }));
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(held->write("the end"));
    EXPECT_TRUE(held->end());
    held.reset();
  }
  EXPECT_EQ(busy.read_to_end(), "7\r\nthe end\r\n0\r\n\r\n");
  server.http->wait();
  EXPECT_EQ(server.http->stats().lost, 0u);
}

TEST(HttpServer, DrainEndsWhatOutlivesTheGracePeriod) {
  std::mutex mutex;
  std::vector<ResponderPtr> held;
  std::atomic<int> told = -1;
  TestServer server([&](HttpRequest, ResponderPtr responder) {
    responder->on_disconnect([&](DisconnectReason reason) { told = static_cast<int>(reason); });
    const std::lock_guard lock(mutex);
    held.push_back(std::move(responder));
  });
  RawClient client = server.client();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.http->stats().requests == 1; }));
  server.http->drain(1);
  server.http->wait();
  EXPECT_EQ(told, static_cast<int>(DisconnectReason::shut_down));
  EXPECT_TRUE(held[0]->gone());
  EXPECT_FALSE(held[0]->send(200, {}, "text/plain", "late"));
  server.http.reset();
  EXPECT_FALSE(held[0]->write("a responder may outlive the server"));
}

TEST(HttpServer, TellsOfSignalsInOrder) {
  std::mutex mutex;
  std::vector<std::pair<int, int>> seen;
  HttpConfig config;
  config.on_signal = [&](int signal, int count) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(signal, count);
  };
  TestServer server(answer_ok, config);
  const auto wait_for = [&](std::size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return seen.size() == count;
    });
  };
  std::raise(SIGTERM);
  ASSERT_TRUE(wait_for(1));
  std::raise(SIGINT);
  ASSERT_TRUE(wait_for(2));
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{SIGTERM, 1}, {SIGINT, 2}}));
}

TEST(HttpServer, RecordsEachAnswer) {
  std::mutex mutex;
  std::vector<AccessRecord> records;
  HttpConfig config;
  config.on_access = [&](const AccessRecord& record) {
    const std::lock_guard lock(mutex);
    records.push_back(record);
  };
  TestServer server(answer_ok, config);
  server.client().get("/one?key=secret", "x-request-id: r1\r\n");
  server.client().send("nonsense\r\n\r\n");
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return records.size() == 2;
  }));
  EXPECT_EQ(records[0].id, "r1");
  EXPECT_EQ(records[0].path, "/one");
  EXPECT_EQ(records[0].status, 200);
  EXPECT_GT(records[0].sent_bytes, 50u);
  EXPECT_FALSE(records[0].lost.has_value());
  EXPECT_EQ(records[1].status, 400);
}

TEST(HttpServer, SeveralThreadsServeManyClients) {
  HttpConfig config;
  config.io_threads = 3;
  TestServer server([](const HttpRequest& request, const ResponderPtr& responder) {
    responder->send(200, {}, "text/plain", request.path);
  }, config);
  std::vector<std::thread> clients;
  for (int c = 0; c < 6; ++c) {
    clients.emplace_back([&server, c] {
      RawClient client = server.client();
      for (int i = 0; i < 50; ++i) {
        const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
        EXPECT_EQ(client.get(path).body, path);
      }
    });
  }
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(server.http->stats().requests, 300u);
  server.http->drain(10'000);
  server.http->wait();
}

// 5,000 idle connections may cost 100 MB. Client and server share this process, so its limit of descriptors halves.
TEST(HttpServer, IdleConnectionsAreSmall) {
  const auto limit = platform::descriptor_limit().value();
  const std::size_t count = std::min<std::size_t>(2000, limit.soft / 2 - 100);
  TestServer server(answer_ok);
  { EXPECT_EQ(server.client().get("/").status, 200); }
  const std::uint64_t before = platform::process_resident_bytes().value();
  std::vector<RawClient> clients;
  clients.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(server.client());
    ASSERT_EQ(clients.back().get("/").status, 200);   // each has had a request: its buffers are gone again
  }
  const std::uint64_t after = platform::process_resident_bytes().value();
  EXPECT_LT(after, before + count * 20'000u);
  EXPECT_EQ(server.http->stats().open_connections, count);
  server.expect_alive();
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server.http->stats().open_connections == 0; }));
}

}  // namespace
}  // namespace kvasir::server
