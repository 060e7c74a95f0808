// Continuation over HTTP: what runs beside a request changes nothing about its answer, token for token and log
// probability for log probability.
#include <thread>

#include "base/prng.hpp"
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

constexpr int kClients = 64;

Json request_number(int i) {
  PhiloxSequence random(7, static_cast<std::uint64_t>(i));
  Json prompt = Json::array();
  const auto tokens = 1 + random.below(120);
  for (std::uint64_t t = 0; t < tokens; ++t) prompt.push_back(3 + random.below(256));
  return {{"model", "tiny"},
          {"prompt", prompt},
          {"max_tokens", 1 + random.below(48)},
          {"temperature", i % 3 == 0 ? 0.0 : 0.9},
          {"top_p", i % 3 == 1 ? 0.8 : 1.0},
          {"repetition_penalty", i % 5 == 4 ? 1.2 : 1.0},
          {"seed", 1000 + i},
          {"n", i % 8 == 7 ? 2 : 1},
          {"ignore_eos", i % 2 == 0},
          {"logprobs", 3},
          {"return_token_ids", true},
          {"stream", i % 4 == 2}};
}

// Tokens, log probabilities and reasons of every choice, streamed or whole alike.
Json essence(const Json& request, const RawResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  Json out = Json::array();
  const auto add = [&out](const Json& choice) {
    while (out.size() <= choice["index"].get<std::size_t>()) {
      out.push_back({{"ids", Json::array()}, {"logprobs", Json::array()}, {"text", ""}, {"finish", nullptr}});
    }
    Json& entry = out[choice["index"].get<std::size_t>()];
    for (const Json& id : choice["token_ids"]) entry["ids"].push_back(id);
    if (!choice["logprobs"].is_null()) {
      for (const Json& value : choice["logprobs"]["token_logprobs"]) entry["logprobs"].push_back(value);
    }
    entry["text"] = entry["text"].get<std::string>() + choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) entry["finish"] = choice["finish_reason"];
  };
  if (!request["stream"].get<bool>()) {
    const Json body = Json::parse(response.body);
    for (const Json& choice : body["choices"]) add(choice);
    return out;
  }
  for (const std::string& event : payloads(response.body)) {
    if (event == "[DONE]") continue;
    const Json body = Json::parse(event);
    for (const Json& choice : body["choices"]) add(choice);
  }
  return out;
}

TEST(AppContinuation, SixtyFourAtOnceAnswerAsEachAlone) {
  TestApp server({}, 200);  // less than all of them want at once
  std::vector<Json> alone, together(kClients);
  for (int i = 0; i < kClients; ++i) {
    const Json request = request_number(i);
    alone.push_back(essence(request, server.client().post("/v1/completions", request.dump())));
    ASSERT_FALSE(alone.back()[0]["ids"].empty());
  }
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const Json request = request_number(i);
      if (i % 6 == 5) {  // another one before it, left in the middle
        Json left = request;
        left["stream"] = true;
        left["max_tokens"] = 400;
        RawClient rude = server.client();
        rude.send(http_post("/v1/completions", left));
        if (i % 12 == 5) rude.read_until("data: ");
        rude.close();
      }
      together[static_cast<std::size_t>(i)] =
          essence(request, server.client().post("/v1/completions", request.dump()));
    });
  }
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < kClients; ++i) EXPECT_EQ(alone[i].dump(), together[i].dump()) << "request " << i;
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
}

}  // namespace
}  // namespace kvasir::server::app_test
