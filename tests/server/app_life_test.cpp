// A server's life: a port before a model, readiness, liveness, drain, second signal.
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

TEST(AppLife, AnswersWhileTheModelLoads) {
  TestApp server({}, 512, true);
  for (const char* path : {"/livez", "/health/live", "/v2/health/live"}) EXPECT_EQ(server.client().get(path).status, 200);
  for (const char* path : {"/health", "/readyz", "/health/ready", "/ping", "/v1/models", "/tokenizer_info"}) {
    const RawResponse response = server.client().get(path);
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_NE(response.header("Retry-After"), "") << path;
    const Json body = Json::parse(response.body);
    EXPECT_EQ(body["error"]["code"], "model_loading");
    EXPECT_EQ(body["progress"]["stage"], "waiting for the test");
  }
  const RawResponse refused = server.client().post("/v1/completions", completion("a", 1).dump());
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.header("Retry-After"), "");
  EXPECT_EQ(server.metric("kvasir_ready"), 0);

  server.finish_loading();
  ASSERT_TRUE(server.app->wait_loaded().ok());
  for (const char* path : {"/livez", "/health", "/readyz", "/health/ready", "/ping", "/v1/models"}) {
    EXPECT_EQ(server.client().get(path).status, 200) << path;
  }
  EXPECT_EQ(server.metric("kvasir_ready"), 1);
  server.post("/v1/completions", completion("a", 1));
}

TEST(AppLife, AModelThatCannotBeLoadedIsToldAndIsNotAlive) {
  TestApp server({}, 512, true);
  server.load_error = "no such file";
  server.finish_loading();
  const Status loaded = server.app->wait_loaded();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message, "no such file");
  EXPECT_EQ(server.client().get("/livez").status, 503);
  EXPECT_EQ(server.client().get("/health").status, 503);
}

TEST(AppLife, EndsWhileTheModelLoads) {
  TestApp server({}, 512, true);
  server.app->drain();
  EXPECT_EQ(server.app->wait(), 0);
  EXPECT_TRUE(server.app->loading());
  EXPECT_FALSE(server.client().connected());
}

// Reads the head and the first event of a stream.
void read_begin(RawClient& client) {
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_NE(client.read_until("data: ").size(), 0u);
}

// A stream whose first step is done while the engine is held behind it.
RawClient held_stream(TestApp& server, std::uint32_t tokens) {
  Json request = completion("one two three", tokens);
  request["stream"] = true;
  RawClient client = server.client();
  server.gate->shut();
  client.send(http_post("/v1/completions", request));
  server.gate->wait_held();
  return client;
}

TEST(AppLife, ADrainRefusesTheNewAndFinishesTheOld) {
  TestApp server;
  RawClient client = held_stream(server, 60);

  server.app->drain();
  std::thread end([&] { server.app->wait(); });
  EXPECT_EQ(server.client().get("/health/ready").status, 503);
  EXPECT_EQ(server.client().get("/livez").status, 200);
  const RawResponse refused = server.client().post("/v1/completions", completion("a", 1).dump());
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "server_is_overloaded");
  EXPECT_NE(refused.header("Retry-After"), "");

  server.gate->open();
  const RawResponse response = client.response();
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(payloads(response.body).back(), "[DONE]");
  end.join();
  EXPECT_FALSE(server.client().connected());
}

TEST(AppLife, AtTheDrainsDeadlineAStreamGetsAnErrorEvent) {
  AppConfig config;
  config.drain_timeout_ms = 0;
  TestApp server(config);
  RawClient client = held_stream(server, 1000);
  server.app->drain();
  std::thread end([&] { server.app->wait(); });
  server.gate->open();
  const RawResponse response = client.response();
  EXPECT_EQ(response.status, 200);
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(Json::parse(events.back())["error"]["code"], "server_shutting_down");
  end.join();
}

TEST(AppLife, ASecondRequestToEndEndsNow) {
  TestApp server;
  Json request = completion("one two three", 1500);
  request["stream"] = true;
  RawClient client = server.client();
  client.send(http_post("/v1/completions", request));
  read_begin(client);
  server.gate->shut();
  server.gate->wait_held();
  server.app->drain();
  std::thread end([&] { server.app->wait(); });
  server.app->stop();
  server.gate->open();
  end.join();
  EXPECT_FALSE(server.client().connected());
  EXPECT_LT(server.app->stats().generated_tokens, 1500u);
}

TEST(AppLife, ServesAUnixSocketToo) {
  AppConfig config;
  config.http.unix_socket = ::testing::TempDir() + "kvasir_app_" + std::to_string(::getpid()) + ".sock";
  TestApp server(config);
  RawClient client(config.http.unix_socket);
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.post("/v1/completions", completion("a", 3).dump()).status, 200);
}

}  // namespace
}  // namespace kvasir::server::app_test
