// A client that leaves, at any moment: everything of its request is freed within a step.
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

Json long_stream(int n = 1) {
  Json request = completion("the quick brown fox jumps over the lazy dog", 1500);
  request["stream"] = true;
  request["n"] = n;
  return request;
}

bool lost(const TestApp& server, int count) {
  return eventually([&] { return server.metric("kvasir_http_lost_total", "reason=\"peer_closed\"") == count; });
}

// Clients leave while the loop is held after a step; then all of it is gone one step later.
void expect_freed(TestApp& server, std::uint64_t cancelled) {
  const int before = server.gate->steps();
  server.gate->open();
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  EXPECT_LE(server.gate->steps(), before + 1);
  EXPECT_EQ(server.app->stats().ended[static_cast<std::size_t>(EndReason::cancelled)], cancelled);
  EXPECT_EQ(server.app->stats().cache.active_blocks, 0u);
}

TEST(AppDisconnect, WhileDecoding) {
  TestApp server;
  RawClient client = server.client();
  client.send(http_post("/v1/completions", long_stream()));
  EXPECT_NE(client.read_until("data: "), "");
  server.gate->shut();
  server.gate->wait_held();
  client.close();
  ASSERT_TRUE(lost(server, 1));
  expect_freed(server, 1);
  EXPECT_EQ(server.metric("kvasir_cancelled_requests_total", "stage=\"decode\""), 1);
}

TEST(AppDisconnect, EveryChoiceEnds) {
  TestApp server({}, 1024);
  RawClient client = server.client();
  client.send(http_post("/v1/completions", long_stream(4)));
  EXPECT_NE(client.read_until("\"index\":3"), "");
  server.gate->shut();
  server.gate->wait_held();
  client.close();
  ASSERT_TRUE(lost(server, 1));
  expect_freed(server, 4);
}

TEST(AppDisconnect, BeforeTheFirstByteWhilePrefilling) {
  TestApp server;
  Json request = completion(std::string(900, 'x'), 600);  // many steps of prompt
  RawClient client = server.client();
  server.gate->shut();
  client.send(http_post("/v1/completions", request));
  server.gate->wait_held();
  client.close();
  ASSERT_TRUE(lost(server, 1));
  expect_freed(server, 1);
  EXPECT_EQ(server.metric("kvasir_cancelled_requests_total", "stage=\"prefill\""), 1);
}

TEST(AppDisconnect, WhileQueued) {
  TestApp server;
  RawClient runs = server.client(), waits = server.client();
  server.gate->shut();
  runs.send(http_post("/v1/completions", completion("a", 2)));
  server.gate->wait_held();
  waits.send(http_post("/v1/completions", completion("b", 100)));
  ASSERT_TRUE(eventually([&] { return server.app->stats().submitted == 2; }));
  waits.close();
  ASSERT_TRUE(lost(server, 1));
  server.gate->open();
  EXPECT_EQ(runs.response().status, 200);
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  EXPECT_EQ(server.metric("kvasir_cancelled_requests_total", "stage=\"queued\""), 1);
  EXPECT_EQ(server.app->stats().generated_tokens, 2u);
}

TEST(AppDisconnect, WhileAWorkerHasIt) {
  AppConfig config;
  config.api_threads = 1;
  TestApp server(config);
  RawClient busy = server.client(), leaves = server.client();
  busy.send(http_post("/tokenize", {{"prompt", std::string(1 << 20, 'a')}}));
  leaves.send(http_post("/v1/completions", long_stream()));
  ASSERT_TRUE(eventually([&] { return server.app->stats().queued_requests + server.app->stats().submitted > 0; }));
  leaves.close();
  EXPECT_EQ(busy.response().status, 200);
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  EXPECT_EQ(server.post("/v1/completions", completion("a", 2))["usage"]["completion_tokens"], 2);
}

TEST(AppDisconnect, AReaderThatDoesNotReadIsDropped) {
  AppConfig config;
  config.http.max_queued_bytes = 16 << 10;
  TestApp server(config, 1024);
  Json request = long_stream(8);
  request["logprobs"] = 5;
  RawClient client = server.client(2048);
  client.send(http_post("/v1/completions", request));
  EXPECT_TRUE(eventually([&] { return server.metric("kvasir_http_lost_total", "reason=\"slow_reader\"") == 1; }));
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  EXPECT_EQ(server.app->stats().ended[static_cast<std::size_t>(EndReason::cancelled)], 8u);
}

}  // namespace
}  // namespace kvasir::server::app_test
