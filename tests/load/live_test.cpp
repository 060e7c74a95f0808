// The generator against a server on loopback. What is asserted depends on order and counts, never on how long things
// took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>

#include "load/endpoint.hpp"
#include "load/generator.hpp"
#include "load/live_transport.hpp"
#include "load/metrics.hpp"
#include "tests/client/fake_server.hpp"

namespace kvasir::load {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using testing::HasSubstr;
using testing::Pair;

Workload requests(std::size_t count, client::Api api = client::Api::completions) {
  Plan plan = plan_random(count, {}, {.input_tokens = 5, .output_tokens = 4}, {});
  return *Workload::create(std::move(plan), PromptSource::words(1), {}, {.api = api, .model = "m"});
}

struct Live {
  explicit Live(const std::string& url, LiveOptions options = {})
      : client(std::move(*client::HttpClient::create(*client::parse_address(url)))),
        transport(*client, std::move(options)) {}
  std::unique_ptr<client::HttpClient> client;
  LiveTransport transport;
};

TEST(LiveTransport, CountsWhatTheServerCounts) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/v1/chat/completions");
    EXPECT_EQ(request.headers.at("authorization"), "Bearer k");
    EXPECT_EQ(request.headers.at("content-type"), "application/json");
    EXPECT_THAT(request.body, HasSubstr("\"messages\""));
    test::stream_answer(reply, true, 4, 17);
  });
  Live live(server.url(),
            {.api = client::Api::chat, .target = "/v1/chat/completions", .headers = {{"Authorization", "Bearer k"}}});
  const RunRecord run = generate(requests(12, client::Api::chat), live.transport, {.max_concurrency = 3});
  const Metrics metrics = compute_metrics(run, {});
  EXPECT_EQ(metrics.completed, 12u) << run.requests[0].error_message;
  EXPECT_EQ(metrics.input_tokens, 12u * 17);
  EXPECT_EQ(metrics.output_tokens, 48u);
  EXPECT_EQ(metrics.itl.count, 36u);
  EXPECT_LE(server.connections(), 3u);  // kept alive
  for (const RequestRecord& record : run.requests) {
    EXPECT_EQ(record.text, "tttt");
    EXPECT_TRUE(record.counted_by_server);
    EXPECT_LE(record.scheduled_ns, record.sent_ns);
    EXPECT_LE(record.sent_ns, record.token_ns.front());
    EXPECT_LE(record.token_ns.back(), record.ended_ns);
  }
}

// The server answers nobody before all have asked: a generator that waited for answers would wait for ever.
TEST(LiveTransport, RequestsComeWhetherOrNotTheServerAnswers) {
  constexpr std::size_t kRequests = 40;
  std::latch all_here(kRequests);
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    all_here.arrive_and_wait();
    test::stream_answer(reply, false, 2, 1);
  });
  Live live(server.url());
  Plan plan = plan_random(kRequests, {.rate_per_s = 2000}, {.input_tokens = 5, .output_tokens = 2}, {});
  const Workload workload = *Workload::create(std::move(plan), PromptSource::token_ids(1, 9, 1), {}, {.model = "m"});
  const Metrics metrics = compute_metrics(generate(workload, live.transport, {}), {.percents = {0}});
  EXPECT_EQ(metrics.completed, kRequests);
  EXPECT_EQ(metrics.max_concurrent_requests, kRequests);
}

TEST(LiveTransport, EveryWayToFailHasItsKind) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    switch (request.number % 7) {
      case 0:
        return reply.respond(503, R"({"error":{"message":"queue is full","code":"server_is_overloaded"}})",
                             "Retry-After: 1\r\n");
      case 1:
        return reply.respond(429, "slow down");
      case 2:
        reply.begin_stream();
        reply.event(R"({"choices":[{"text":"t","finish_reason":null}]})");
        return reply.close();
      case 3:
        reply.begin_stream();
        reply.event(R"({"error":{"message":"out of blocks"}})");
        return reply.end_stream();
      case 4:
        reply.begin_stream();
        return reply.end_stream();
      case 5:
        return reply.close();
      default:
        return test::stream_answer(reply, false, 2, 1);
    }
  });
  Live live(server.url());
  // One at a time, so that the server's count decides. The drops of case 5 meet a used connection: both are tried
  // again, and are case 6 then.
  const RunRecord run = generate(requests(13), live.transport, {.max_concurrency = 1});
  const Metrics metrics = compute_metrics(run, {});
  EXPECT_THAT(metrics.errors, testing::ElementsAre(Pair("closed", 2u), Pair("http_429", 2u), Pair("http_503", 3u),
                                                   Pair("no_token", 2u), Pair("stream", 2u)));
  EXPECT_EQ(metrics.completed, 2u);
  EXPECT_EQ(live.client->counters().retries, 2u);
  for (const RequestRecord& record : run.requests) {
    if (record.error_kind == "http_503") {
      EXPECT_EQ(record.error_message, "queue is full");
    }
    if (record.error_kind == "http_429") {
      EXPECT_EQ(record.error_message, "slow down");
    }
    if (record.error_kind == "stream") {
      EXPECT_EQ(record.error_message, "out of blocks");
    }
  }
}

TEST(LiveTransport, NobodyListeningIsAConnectFailure) {
  Live live("http://127.0.0.1:" + std::to_string(test::closed_port()));
  const RunRecord run = generate(requests(3), live.transport, {});
  EXPECT_THAT(compute_metrics(run, {}).errors, testing::ElementsAre(Pair("connect", 3u)));
  EXPECT_THAT(run.requests[0].error_message, HasSubstr("Connection refused"));
}

TEST(LiveTransport, AnInterruptEndsWhatRuns) {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::atomic<std::size_t> here = 0;
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    ++here;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over; });
  });
  {
    Live live(server.url());
    const RunRecord run = generate(requests(5), live.transport, {.stop = [&] { return here == 5; }});
    EXPECT_TRUE(run.interrupted);
    EXPECT_THAT(compute_metrics(run, {}).errors, testing::ElementsAre(Pair("cancelled", 5u)));
  }
  const std::lock_guard lock(mutex);
  over = true;
  changed.notify_all();
}

TEST(Endpoint, NamesTheFirstModelOnceTheServerHasLoaded) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    EXPECT_EQ(request.target, "/v1/models");
    if (request.number < 2) return reply.respond(503, R"({"error":{"message":"loading"}})");
    reply.respond(200, R"({"object":"list","data":[{"id":"tiny"},{"id":"other"}]})");
  });
  Live live(server.url());
  EXPECT_THAT(first_model(*live.client, "/v1/models", {}, 0, {}).error().message, HasSubstr("answered 503"));
  const auto model = first_model(*live.client, "/v1/models", {}, 600, {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(*model, "tiny");
  EXPECT_EQ(server.requests(), 3u);
}

TEST(Endpoint, SaysWhatCameInstead) {
  std::string body = "nothing";
  int status = 404;
  FakeServer server([&](const FakeRequest&, FakeReply& reply) { reply.respond(status, body); });
  Live live(server.url());
  const auto message = [&] { return first_model(*live.client, "/v1/models", {}, 0, {}).error().message; };
  EXPECT_EQ(message(),
            "GET /v1/models answered 404 (name the model with --model if the server has no such route): nothing");
  status = 401;
  EXPECT_THAT(message(), HasSubstr("OPENAI_API_KEY"));
  status = 200;
  for (const char* text : {"nothing", "{}", R"({"data":[]})", R"({"data":[{"name":"x"}]})", R"({"data":["x"]})"}) {
    body = text;
    EXPECT_EQ(message(), "GET /v1/models named no model; is this an OpenAI endpoint? It answered: " + body);
  }
}

}  // namespace
}  // namespace kvasir::load
