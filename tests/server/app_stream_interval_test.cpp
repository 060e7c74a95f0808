// Several tokens in a chunk, over HTTP: the same answer from the same engine, in fewer events.
#include <algorithm>
#include <map>

#include "base/prng.hpp"
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

Json request_number(int i) {
  PhiloxSequence random(11, static_cast<std::uint64_t>(i));
  Json out = {
      {"model", "tiny"},    {"max_tokens", 1 + random.below(40)},
      {"temperature", 0.9}, {"seed", 500 + i},
      {"n", 1 + i % 2},     {"return_token_ids", true},
      {"stream", true},     {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", i % 3 == 0}}}};
  const std::string prompt = "tell me number " + std::to_string(i);
  if (i % 2 == 0) {
    out["prompt"] = prompt;
    out["logprobs"] = 2;
  } else {
    out["messages"] = {{{"role", "user"}, {"content", prompt}}};
    out["logprobs"] = true;
    out["top_logprobs"] = 2;
  }
  return out;
}

struct Received {
  Json answer;                                // what a client puts together
  std::map<int, std::vector<int>> per_chunk;  // of each choice: tokens of its chunks
};

Received ask(const TestApp& server, const Json& request) {
  const bool chat = request.contains("messages");
  const RawResponse response = server.client().post(chat ? "/v1/chat/completions" : "/v1/completions", request.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  Received out;
  for (const std::string& payload : payloads(response.body)) {
    if (payload == "[DONE]") continue;
    const Json chunk = Json::parse(payload);
    if (chunk["choices"].empty()) out.answer["usage"] = chunk["usage"];
    for (const Json& choice : chunk["choices"]) {
      Json& kept = out.answer[choice["index"].dump()];
      if (kept.is_null()) kept = {{"text", ""}, {"ids", Json::array()}, {"logprobs", Json::array()}};
      kept["text"] =
          kept["text"].get<std::string>() + (chat ? choice["delta"].value("content", "") : choice.value("text", ""));
      for (const Json& id : choice.value("token_ids", Json::array())) kept["ids"].push_back(id);
      const Json logprobs =
          choice["logprobs"].is_null() ? Json::array() : choice["logprobs"][chat ? "content" : "token_logprobs"];
      for (const Json& entry : logprobs) kept["logprobs"].push_back(entry);
      kept["finish"] = choice["finish_reason"];
      kept["stop"] = choice.value("stop_reason", Json());
      if (choice.contains("token_ids")) {
        out.per_chunk[choice["index"]].push_back(static_cast<int>(choice["token_ids"].size()));
      }
    }
  }
  return out;
}

TEST(AppStreamInterval, AnswersAreTheSameForEveryInterval) {
  TestApp server;
  int stopped = 0;
  for (int i = 0; i < 16; ++i) {
    Json request = request_number(i);
    const Received each = ask(server, request);
    const std::string text = each.answer["0"]["text"];
    const auto stop = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(text.size() / 2), text.end(),
                                   [](char c) { return c > ' ' && c < 127; });
    if (i % 4 >= 2 && stop != text.end()) request["stop"] = Json::array({std::string(1, *stop)});
    const Json one = ask(server, request).answer;
    stopped += one["0"]["finish"] == "stop" ? 1 : 0;
    for (const int interval : {2, 7}) {
      request["stream_interval"] = interval;
      EXPECT_EQ(ask(server, request).answer.dump(), one.dump()) << "request " << i << ", interval " << interval;
    }
  }
  EXPECT_GE(stopped, 4);
}

TEST(AppStreamInterval, TheServersSettingHoldsForRequestsThatSayNothing) {
  AppConfig config;
  config.stream_interval = 3;
  TestApp server(config);
  Json request = completion("hello", 9);
  request["stream"] = request["return_token_ids"] = true;
  const std::vector<int> three = {1, 3, 3, 2};
  EXPECT_EQ(ask(server, request).per_chunk[0], three) << "the last two with the end";
  request["stream_interval"] = 1;
  EXPECT_EQ(ask(server, request).per_chunk[0], three);
  request["stream_interval"] = 5;
  EXPECT_EQ(ask(server, request).per_chunk[0], (std::vector<int>{1, 5, 3}));
}

// Fewer events, and no more system calls than events.
TEST(AppStreamInterval, ChunksSaveWrites) {
  TestApp server;
  Json request = completion("hello", 100);
  request["stream"] = request["return_token_ids"] = true;
  const auto writes = [&server, &request](int interval) {
    request["stream_interval"] = interval;
    const double before = server.metric("kvasir_http_writes_total");
    EXPECT_EQ(ask(server, request).answer["0"]["ids"].size(), 100u);
    return server.metric("kvasir_http_writes_total") - before;
  };
  writes(1);  // also for the scrapes to settle
  EXPECT_LE(writes(25), 12);
}

TEST(AppStreamInterval, ABadSettingIsRefused) {
  for (const std::uint32_t interval : {0u, 257u}) {
    AppConfig config;
    config.names = {"tiny"};
    config.stream_interval = interval;
    const Status status = validate(config);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "stream-interval is " + std::to_string(interval) + ", valid: 1 to 256");
  }
}

}  // namespace
}  // namespace kvasir::server::app_test
