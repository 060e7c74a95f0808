// The client against a server that does what the test says.
#include "client/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <future>
#include <latch>
#include <thread>

#include "client/sse.hpp"
#include "tests/client/fake_server.hpp"

namespace kvasir::client {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using testing::HasSubstr;

std::unique_ptr<HttpClient> client_for(const std::string& url, const ClientOptions& options = {}) {
  auto client = HttpClient::create(*parse_address(url), options);
  EXPECT_TRUE(client.ok());
  return std::move(*client);
}

// Keeps all that a handler is told.
class Witness final : public ExchangeHandler {
 public:
  void on_head(const ResponseHead& head, std::uint64_t ns) override {
    status = head.status;
    times.push_back(ns);
    began.set_value();
  }
  void on_body(std::string_view bytes, std::uint64_t ns) override {
    body += bytes;
    times.push_back(ns);
  }
  void on_end(const ExchangeEnd& told) override {
    end = told;
    times.push_back(told.ended_ns);
    ended.set_value();
  }
  void wait() { ended.get_future().wait(); }

  unsigned status = 0;
  std::string body;
  std::vector<std::uint64_t> times;
  ExchangeEnd end;
  std::promise<void> began, ended;
};

std::shared_ptr<Witness> exchange(HttpClient& client, HttpRequest request = {}) {
  auto witness = std::make_shared<Witness>();
  client.start(std::move(request), witness);
  witness->wait();
  return witness;
}

TEST(HttpClient, SendsWhatIsAskedAndGivesBackWhatCame) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/team/v1/x");
    EXPECT_EQ(request.headers.at("x-team"), "search");
    EXPECT_THAT(request.headers.at("host"), HasSubstr("127.0.0.1:"));
    EXPECT_EQ(request.body, "{}");
    reply.respond(201, "made", "X-Request-Id: 7\r\n");
  });
  const auto client = client_for(server.url() + "/team");
  const auto response =
      client->fetch({.method = "POST", .target = "/v1/x", .headers = {{"X-Team", "search"}}, .body = "{}"});
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->head.status, 201u);
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(*response->head.find("x-request-id"), "7");
}

TEST(HttpClient, AConnectionIsUsedAgain) {
  FakeServer server(
      [](const FakeRequest& request, FakeReply& reply) { reply.respond(200, std::to_string(request.on_connection)); });
  const auto client = client_for(server.url());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client->fetch({})->body, std::to_string(i));
  EXPECT_EQ(server.connections(), 1u);
  EXPECT_EQ(client->counters().connections_opened, 1u);
  EXPECT_EQ(client->counters().exchanges_on_reused, 4u);
}

TEST(HttpClient, AConnectionTheServerClosesIsNotUsedAgain) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.respond(200, "x", "Connection: close\r\n");
    reply.close();
  });
  const auto client = client_for(server.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client->fetch({})->body, "x");
  EXPECT_EQ(server.connections(), 3u);
  EXPECT_EQ(client->counters().retries, 0u);
}

// The server ends an idle connection without a word: the request goes again, once, on a new one.
TEST(HttpClient, AnIdleConnectionThatWasClosedCostsOneMoreTry) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.on_connection == 1) return reply.close();
    reply.respond(200, "x");
  });
  const auto client = client_for(server.url());
  EXPECT_EQ(client->fetch({})->body, "x");
  const auto again = exchange(*client);
  EXPECT_EQ(again->body, "x");
  EXPECT_FALSE(again->end.reused_connection);
  EXPECT_EQ(client->counters().retries, 1u);
  EXPECT_EQ(server.connections(), 2u);
}

TEST(HttpClient, AFreshConnectionThatIsClosedIsAFailureNotARetry) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.close(); });
  const auto client = client_for(server.url());
  const auto witness = exchange(*client);
  EXPECT_EQ(witness->end.failure, Failure::closed);
  EXPECT_THAT(witness->end.message, HasSubstr("the connection was closed early"));
  EXPECT_EQ(server.requests(), 1u);
}

TEST(HttpClient, PiecesComeAsTheyAreSentWithTheirTimes) {
  std::promise<void> first_seen;
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    reply.event("one");
    first_seen.get_future().wait();  // the second piece does not exist before the first was seen
    reply.event("two");
    reply.end_stream();
  });
  const auto client = client_for(server.url());
  class Impatient final : public ExchangeHandler {
   public:
    explicit Impatient(std::promise<void>& seen) : seen_(seen) {}
    void on_head(const ResponseHead&, std::uint64_t ns) override { times.push_back(ns); }
    void on_body(std::string_view bytes, std::uint64_t ns) override {
      if (body.empty()) seen_.set_value();
      body += bytes;
      times.push_back(ns);
    }
    void on_end(const ExchangeEnd& end) override {
      failure = end.failure;
      done.set_value();
    }
    std::string body;
    std::vector<std::uint64_t> times;
    Failure failure = Failure::cancelled;
    std::promise<void> done;

   private:
    std::promise<void>& seen_;
  };
  auto handler = std::make_shared<Impatient>(first_seen);
  client->start({}, handler);
  handler->done.get_future().wait();
  EXPECT_EQ(handler->failure, Failure::none);
  EXPECT_EQ(handler->body, "data: one\n\ndata: two\n\ndata: [DONE]\n\n");
  EXPECT_TRUE(std::ranges::is_sorted(handler->times));
}

// A chunked response cut at every byte, in the head too.
TEST(HttpClient, AResponseMayArriveCutAnywhere) {
  const std::string response =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n4;x=y\r\n x\n\n\r\n0\r\n\r\n";
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    reply.raw(std::string_view(response).substr(0, request.number));
    std::this_thread::yield();
    reply.raw(std::string_view(response).substr(request.number));
  });
  const auto client = client_for(server.url());
  for (std::size_t cut = 0; cut <= response.size(); ++cut) {
    const auto witness = exchange(*client);
    EXPECT_EQ(witness->end.failure, Failure::none) << "cut at " << cut << ": " << witness->end.message;
    EXPECT_EQ(witness->body, "data: x\n\n") << "cut at " << cut;
  }
  EXPECT_EQ(server.connections(), 1u);
}

TEST(HttpClient, AStreamThatBreaksOffIsClosedNotDone) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    reply.event("one");
    reply.close();
  });
  const auto witness = exchange(*client_for(server.url()));
  EXPECT_EQ(witness->status, 200u);
  EXPECT_EQ(witness->body, "data: one\n\n");
  EXPECT_EQ(witness->end.failure, Failure::closed);
}

TEST(HttpClient, WhatIsNotHttpIsAProtocolFailure) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.raw("220 mail.example ESMTP\r\n\r\n");
    reply.close();
  });
  EXPECT_EQ(exchange(*client_for(server.url()))->end.failure, Failure::protocol);
}

TEST(HttpClient, AHeadWithoutEndIsTooLarge) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.raw("HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 64; ++i) reply.raw("X-Long: " + std::string(4096, 'x') + "\r\n");
    reply.close();
  });
  EXPECT_EQ(exchange(*client_for(server.url()))->end.failure, Failure::too_large);
}

TEST(HttpClient, ARefusedConnectionIsNamed) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const auto client = client_for(url);
  const auto witness = exchange(*client);
  EXPECT_EQ(witness->end.failure, Failure::connect);
  EXPECT_EQ(witness->end.message, "cannot connect to " + url.substr(7) + ": Connection refused");
  EXPECT_EQ(client->fetch({}).error().code, ErrorCode::io);
}

TEST(HttpClient, AnUnknownHostIsNamed) {
  const auto client = HttpClient::create(*parse_address("http://no-such-host.invalid"));
  ASSERT_FALSE(client.ok());
  EXPECT_THAT(client.error().message, HasSubstr("cannot find the host 'no-such-host.invalid'"));
}

TEST(HttpClient, SpeaksOverAUnixSocket) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("kvasir-client-" + std::to_string(getpid()) + ".sock");
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.respond(200, "local"); }, path);
  const auto client = client_for("unix:" + path);
  EXPECT_EQ(client->fetch({})->body, "local");
  EXPECT_EQ(client->fetch({})->body, "local");
  EXPECT_EQ(server.connections(), 1u);
  const auto nobody = client_for("unix:" + path + ".not");
  EXPECT_THAT(nobody->fetch({}).error().message, HasSubstr("No such file"));
}

// Whichever limit passes first: the server never answers, so the test cannot end otherwise.
TEST(HttpClient, AServerThatNeverAnswersIsATimeout) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  FakeServer server([ended](const FakeRequest&, FakeReply&) { ended.wait(); });
  {
    const auto idle = client_for(server.url(), {.idle_timeout = std::chrono::milliseconds(20)});
    EXPECT_EQ(exchange(*idle)->end.failure, Failure::timeout);
    const auto total = client_for(server.url(), {.total_timeout = std::chrono::milliseconds(20)});
    const auto witness = exchange(*total);
    EXPECT_EQ(witness->end.failure, Failure::timeout);
    EXPECT_THAT(witness->end.message, HasSubstr("time is out"));
  }
  end.set_value();
}

TEST(HttpClient, CancelledExchangesEndOnceAndSoDoesTheClient) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  FakeServer server([ended](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    reply.event("one");
    ended.wait();
  });
  auto client = client_for(server.url());
  auto streaming = std::make_shared<Witness>(), at_destruction = std::make_shared<Witness>();
  client->start({}, streaming);
  streaming->began.get_future().wait();
  client->cancel_all();
  streaming->wait();
  EXPECT_EQ(streaming->end.failure, Failure::cancelled);
  client->start({}, at_destruction);
  client.reset();
  at_destruction->wait();
  EXPECT_EQ(at_destruction->end.failure, Failure::cancelled);
  end.set_value();
}

// All at once: the server answers nobody before everybody has asked.
TEST(HttpClient, HundredsOfExchangesRunAtOnce) {
  constexpr std::size_t kExchanges = 300;
  std::latch all_here(kExchanges);
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    all_here.arrive_and_wait();
    reply.respond(200, "x");
  });
  const auto client = client_for(server.url());
  std::vector<std::shared_ptr<Witness>> witnesses;
  for (std::size_t i = 0; i < kExchanges; ++i) {
    witnesses.push_back(std::make_shared<Witness>());
    client->start({}, witnesses.back());
  }
  for (const auto& witness : witnesses) {
    witness->wait();
    EXPECT_EQ(witness->body, "x") << witness->end.message;
  }
  EXPECT_EQ(client->counters().connections_opened, kExchanges);
}

TEST(HttpClient, AResponseToFetchHasALimit) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.respond(200, std::string(1000, 'x')); });
  const auto client = client_for(server.url(), {.fetch_bytes_max = 999});
  EXPECT_EQ(client->fetch({}).error().message, "the response has more than 999 bytes");
}

}  // namespace
}  // namespace kvasir::client
