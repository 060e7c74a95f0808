// The routes from outside: answers, refusals, limits. What a body may say is tested with the API's functions.
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

Json chat(const std::string& content, int max_tokens) {
  return {{"model", "tiny"},
          {"messages", {{{"role", "user"}, {"content", content}}}},
          {"max_tokens", max_tokens},
          {"temperature", 0},
          {"ignore_eos", true}};
}

TEST(AppApi, ChatWholeAndStreamedSayTheSame) {
  TestApp server;
  Json request = chat("hello", 24);
  const Json whole = server.post("/v1/chat/completions", request);
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(whole["usage"]["completion_tokens"], 24);
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_TRUE(whole["system_fingerprint"].get<std::string>().starts_with("kvasir-"));

  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const RawResponse response = server.client().post("/v1/chat/completions", request.dump());
  EXPECT_TRUE(response.header("Content-Type").starts_with("text/event-stream"));
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  std::string text;
  for (std::size_t i = 0; i + 2 < events.size(); ++i) {
    const Json delta = Json::parse(events[i])["choices"][0]["delta"];
    if (delta.contains("content")) text += delta["content"].get<std::string>();
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(Json::parse(events[events.size() - 2])["usage"], whole["usage"]);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(AppApi, CompletionsTakeAllPromptShapesAndSeveralChoices) {
  TestApp server;
  Json request = completion("ab", 4);
  request["prompt"] = {"ab", "cd"};
  request["n"] = 2;
  const Json two = server.post("/v1/completions", request);
  ASSERT_EQ(two["choices"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(two["choices"][i]["index"], i);
  EXPECT_EQ(two["choices"][0]["text"], two["choices"][1]["text"]);  // greedy

  const Json ids = server.post("/tokenize", {{"prompt", "ab"}})["tokens"];
  request["n"] = 1;
  request["prompt"] = ids;
  EXPECT_EQ(server.post("/v1/completions", request)["choices"][0]["text"], two["choices"][0]["text"]);
  request["prompt"] = Json::array({ids, ids});
  EXPECT_EQ(server.post("/v1/completions", request)["choices"][1]["text"], two["choices"][0]["text"]);
}

// What lm-eval asks: log probabilities of a text, nothing generated.
TEST(AppApi, AnEchoScoresThePrompt) {
  TestApp server;
  Json request = completion("hello world", 0);
  request["echo"] = true;
  request["logprobs"] = 1;
  const Json scored = server.post("/v1/completions", request)["choices"][0];
  EXPECT_EQ(scored["text"], "hello world");
  const std::size_t tokens = server.post("/tokenize", {{"prompt", "hello world"}})["tokens"].size();
  ASSERT_EQ(scored["logprobs"]["token_logprobs"].size(), tokens);
  EXPECT_TRUE(scored["logprobs"]["token_logprobs"][0].is_null());
  EXPECT_LT(scored["logprobs"]["token_logprobs"][1].get<double>(), 0);

  request["max_tokens"] = 3;
  request["stream"] = true;
  request["n"] = 2;
  const RawResponse response = server.client().post("/v1/completions", request.dump());
  std::size_t entries = 0;
  for (const std::string& event : payloads(response.body)) {
    if (event == "[DONE]") continue;
    const Json choice = Json::parse(event)["choices"][0];
    if (choice["index"] == 1 && !choice["logprobs"].is_null()) entries += choice["logprobs"]["tokens"].size();
  }
  EXPECT_EQ(entries, tokens + 3);
}

// Nothing comes before the first token, so it has no probability; of a prompt of one token there is no other.
TEST(AppApi, APromptOfOneTokenHasOneEntryWithoutAValue) {
  TestApp server;
  for (const bool stream : {false, true}) {
    for (const int most : {0, 2}) {
      Json request = completion("a", most);
      request["prompt"] = Json::array({5});
      request["echo"] = true;
      request["logprobs"] = 1;
      request["stream"] = stream;
      const RawResponse response = server.client().post("/v1/completions", request.dump());
      ASSERT_EQ(response.status, 200) << response.body;
      const Json first = stream ? Json::parse(payloads(response.body)[0]) : Json::parse(response.body);
      EXPECT_TRUE(first["choices"][0]["logprobs"]["token_logprobs"][0].is_null());
    }
  }
  Json request = completion("a", 1);
  request["prompt"] = Json::array({5});
  request["prompt_logprobs"] = 1;
  const Json scored = server.post("/v1/completions", request)["choices"][0];
  EXPECT_EQ(scored["prompt_logprobs"], Json::array({nullptr}));
}

TEST(AppApi, RoutesThatGenerateNothing) {
  TestApp server;
  EXPECT_EQ(server.get("/v1/models")["data"][0]["id"], "tiny");
  EXPECT_EQ(server.get("/v1/models/alias")["id"], "alias");
  EXPECT_EQ(server.get("/v1/models/other", 404)["error"]["code"], "model_not_found");
  const Json ids = server.post("/tokenize", {{"prompt", "hello"}})["tokens"];
  EXPECT_EQ(server.post("/detokenize", {{"tokens", ids}})["prompt"], "hello");
  EXPECT_EQ(server.post("/v1/completions/render", completion("hello", 1))[0]["token_ids"], ids);
  EXPECT_FALSE(server.post("/v1/chat/completions/render", chat("hello", 1))["token_ids"].empty());
  EXPECT_GT(server.get("/tokenizer_info")["vocab_size"].get<int>(), 256);
  EXPECT_EQ(server.get("/version")["version"], "0.0.0-test");
  EXPECT_EQ(server.get("/load")["server_load"], 0);
}

// Every byte and every block of the cache is somewhere, while a request holds some of them and after.
TEST(AppApi, KvStatsAddUp) {
  TestApp server({}, 64);
  const auto check = [&server](std::uint64_t active) {
    const Json stats = server.get("/kv/stats");
    const auto number = [](const Json& of, const char* name) { return of.at(name).get<std::uint64_t>(); };
    std::uint64_t superpages = number(stats["arena"], "free"), active_bytes = 0, claimed_bytes = 0;
    for (const Json& group : stats["groups"]) {
      const std::uint64_t blocks = number(group, "active") + number(group, "cached") + number(group, "free") + number(group, "quarantined");
      EXPECT_EQ(blocks, number(group, "superpages") * number(group, "blocks_per_superpage"));
      EXPECT_EQ(blocks * number(group, "block_bytes") + number(group, "tail_bytes"),
                number(group, "superpages") * number(stats["arena"], "superpage_bytes"));
      superpages += number(group, "superpages");
      active_bytes += number(group, "active") * number(group, "block_bytes");
      claimed_bytes += number(group, "claimed") * number(group, "block_bytes");
    }
    EXPECT_EQ(superpages, number(stats["arena"], "superpages"));
    EXPECT_EQ(active_bytes, number(stats, "active_bytes"));
    EXPECT_EQ(claimed_bytes, number(stats, "claimed_bytes"));
    EXPECT_EQ(number(stats, "active_bytes") + number(stats, "cached_bytes") + number(stats, "free_bytes") +
                  number(stats, "quarantined_bytes") + number(stats, "slack_bytes"),
              number(stats, "total_bytes"));
    EXPECT_EQ(stats["groups"].size(), 1u);
    EXPECT_EQ(stats["groups"][0]["kind"], "full");
    EXPECT_EQ(stats["groups"][0]["block_tokens"], 16);
    EXPECT_EQ(stats["groups"][0]["active"], active);
  };
  check(0);
  RawClient client = server.client();
  Json request = completion("abcdefgh", 900);
  request["stream"] = true;
  client.send(http_post("/v1/completions", request));
  EXPECT_NE(client.read_until("data: "), "");
  server.gate->shut();
  server.gate->wait_held();
  check(server.app->stats().cache.active_blocks);
  EXPECT_GT(server.app->stats().cache.active_blocks, 0u);
  EXPECT_EQ(server.metric("kvasir_kv_group_blocks", "group=\"0\",model_name=\"tiny\",state=\"active\""),
            static_cast<double>(server.app->stats().cache.active_blocks));
  server.gate->open();
  client.close();
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  check(0);
}

TEST(AppApi, ErrorsAreJson) {
  AppConfig config;
  config.http.max_body_bytes = 4096;
  TestApp server(config);
  EXPECT_EQ(server.get("/nowhere", 404)["error"]["code"], "unknown_url");
  EXPECT_TRUE(server.get("/v1/completions", 405).contains("error"));
  EXPECT_TRUE(server.post("/v1/completions", completion(std::string(8192, 'x'), 1), 413).contains("error"));
  EXPECT_EQ(server.post("/v1/completions", {{"model", "gpt"}, {"prompt", "x"}}, 404)["error"]["code"],
            "model_not_found");
  const Json range = server.post("/v1/completions", {{"prompt", "x"}, {"temperature", -1}}, 400);
  EXPECT_EQ(range["error"]["param"], "temperature");
  server.post("/v1/completions", completion("still served", 1));
}

TEST(AppApi, OneConnectionServesManyRequests) {
  TestApp server;
  RawClient client = server.client();
  for (int i = 0; i < 20; ++i) {
    Json request = completion("again", 3);
    request["stream"] = i % 2 == 1;
    const RawResponse response = client.post("/v1/completions", request.dump(), "x-request-id: mine\r\n");
    ASSERT_EQ(response.status, 200);
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.header("x-request-id"), "mine");
  }
}

TEST(AppApi, WhatCanNeverFitIsRefusedForGood) {
  TestApp server({}, 4);  // 64 tokens of cache
  const RawResponse response = server.client().post("/v1/completions", completion("hello", 500).dump());
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.header("x-should-retry"), "false");
  const std::string message = Json::parse(response.body)["error"]["message"];
  EXPECT_NE(message.find('4'), std::string::npos) << message;  // blocks there are
  // Without a limit it is held within what the cache has.
  Json request = completion("hello", 1);
  request.erase("max_tokens");
  const Json answer = server.post("/v1/completions", request);
  EXPECT_EQ(answer["usage"]["total_tokens"], 65);  // the last token needs no row

  TestApp roomy;
  const RawResponse context = roomy.client().post("/v1/completions", completion("hello", 5000).dump());
  EXPECT_EQ(context.status, 400);
  EXPECT_EQ(context.header("x-should-retry"), "false");
  EXPECT_EQ(Json::parse(context.body)["error"]["code"], "context_length_exceeded");
}

TEST(AppApi, AFullQueueRefusesWithATimeToWait) {
  AppConfig config;
  config.loop.max_queued_requests = 3;   // the request of the held step is charged until the step is settled
  TestApp server(config);
  std::vector<RawClient> clients;
  server.gate->shut();
  clients.push_back(server.client());
  clients[0].send(http_post("/v1/completions", completion("a", 2)));
  server.gate->wait_held();
  for (int i = 1; i < 3; ++i) {
    clients.push_back(server.client());
    clients.back().send(http_post("/v1/completions", completion("b", 2)));
  }
  ASSERT_TRUE(eventually([&] { return server.app->stats().submitted == 3; }));
  const RawResponse refused = server.client().post("/v1/completions", completion("c", 2).dump());
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "server_is_overloaded");
  const int wait = std::atoi(refused.header("Retry-After").c_str());
  EXPECT_TRUE(wait >= 1 && wait <= 120) << wait;
  EXPECT_EQ(server.metric("vllm:admission_rejections_total", "max_num_queued_reqs"), 1);
  server.gate->open();
  for (RawClient& client : clients) EXPECT_EQ(client.response().status, 200);
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
}

TEST(AppApi, AKeysLimitIsItsOwn) {
  AppConfig config;
  ASSERT_TRUE(config.keys.add("one secret-key-1\ntwo secret-key-2\n", "test").ok());
  config.max_requests_per_key = 1;
  TestApp server(config);
  const std::string one = "Authorization: Bearer secret-key-1\r\n", two = "Authorization: Bearer secret-key-2\r\n";
  const std::string body = completion("a", 2).dump();
  EXPECT_EQ(server.client().post("/v1/completions", body).status, 401);
  server.gate->shut();
  RawClient first = server.client();
  first.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + one + "Content-Length: " + std::to_string(body.size()) +
             "\r\n\r\n" + body);
  server.gate->wait_held();
  const RawResponse refused = server.client().post("/v1/completions", body, one);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "slow_down");
  EXPECT_NE(refused.header("Retry-After"), "");
  server.gate->open();
  EXPECT_EQ(first.response().status, 200);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server.client().post("/v1/completions", body, one).status, 200);
  EXPECT_EQ(server.client().post("/v1/completions", body, two).status, 200);
}

TEST(AppApi, MetricsCountWhatHappened) {
  TestApp server;
  Json request = completion("hello world", 5);
  const int prompt = server.post("/v1/completions", request)["usage"]["prompt_tokens"];
  EXPECT_EQ(server.metric("vllm:prompt_tokens_total"), prompt);
  EXPECT_EQ(server.metric("vllm:prompt_tokens_by_source_total", "local_compute"), prompt);
  EXPECT_EQ(server.metric("vllm:generation_tokens_total"), 5);
  EXPECT_EQ(server.metric("vllm:request_success_total", "length"), 1);
  EXPECT_EQ(server.metric("vllm:time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(server.metric("vllm:inter_token_latency_seconds_count"), 4);
  EXPECT_EQ(server.metric("vllm:num_requests_running"), 0);
  EXPECT_EQ(server.metric("kvasir_kv_blocks", "state=\"active\""), 0);
  EXPECT_GT(server.metric("kvasir_steps_total"), 4);
  EXPECT_TRUE(eventually([&] { return server.log.find("generated") != std::string::npos; }));
  EXPECT_EQ(server.log.find("hello world"), std::string::npos);  // facts, no text
}

}  // namespace
}  // namespace kvasir::server::app_test
