// Several answers to one prompt over HTTP: beams, samples by their seed, and the best of samples, each held against the engine
// alone.
#include <algorithm>
#include <numeric>

#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

using engine::GenerateRequest;

// One answer as an API shows it and as the engine gives it.
struct Shown {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::string finish;
  Json stop;

  double mean() const {
    return std::accumulate(logprobs.begin(), logprobs.end(), 0.0) / static_cast<double>(logprobs.size());
  }
  bool operator==(const Shown&) const = default;
};

Shown shown(const Json& choice) {
  Shown out;
  out.text = choice.contains("message") ? choice["message"]["content"] : choice["text"];
  out.tokens = choice["token_ids"].get<std::vector<TokenId>>();
  if (choice["logprobs"].contains("content")) {
    for (const Json& token : choice["logprobs"]["content"]) out.logprobs.push_back(token["logprob"]);
  } else {
    out.logprobs = choice["logprobs"]["token_logprobs"].get<std::vector<float>>();
  }
  out.finish = choice["finish_reason"];
  out.stop = choice["stop_reason"];
  return out;
}

std::vector<Shown> all_shown(const Json& answer) {
  std::vector<Shown> out;
  for (const Json& choice : answer["choices"]) {
    EXPECT_EQ(choice["index"], out.size());
    out.push_back(shown(choice));
  }
  return out;
}

// The answers of an engine with nothing else to do.
std::vector<Shown> alone(GenerateRequest request) {
  engine::PoolConfig pool = engine::test::pool_of(512);
  pool.max_sequences = 64;
  const auto engine = engine::test::make_engine(engine::test::shared_gqa(), pool, true);
  request.sampling.logprobs = 0;
  std::vector<Shown> answers;
  EXPECT_TRUE(engine->submit(request).ok());
  std::vector<engine::TokenOutput> out;
  while (engine->has_work()) {
    engine->step(out);
    for (const engine::TokenOutput& output : out) {
      answers.resize(std::max<std::size_t>(answers.size(), output.choice + 1));
      Shown& answer = answers[output.choice];
      answer.text += output.text;
      answer.tokens.push_back(output.token);
      answer.logprobs.push_back(output.logprob);
      answer.finish = engine::to_string(output.finish);
      answer.stop = output.stop_token >= 0 ? Json(output.stop_token) : Json(nullptr);
    }
  }
  return answers;
}

Json shows_all(Json request, bool chat = false) {
  request["return_token_ids"] = true;
  request["logprobs"] = chat ? Json(true) : Json(0);
  return request;
}

Json beams(const std::string& prompt, int n, int width) {
  Json request = shows_all({{"prompt", prompt}, {"max_tokens", 16}, {"use_beam_search", true}, {"n", n}});
  if (width != n) request["best_of"] = width;
  return request;
}

GenerateRequest request_of(const TestApp& server, const std::string& prompt, std::uint32_t max_tokens) {
  GenerateRequest request;
  request.prompt = server.post("/tokenize", {{"prompt", prompt}})["tokens"].get<std::vector<TokenId>>();
  request.max_tokens = max_tokens;
  return request;
}

// A token that greedy answers to this prompt come to: where searches can end.
TokenId end_of(const TestApp& server, const std::string& prompt) {
  return alone(request_of(server, prompt, 6))[0].tokens[5];
}

TEST(AppSearch, BeamsAreTheEnginesOwn) {
  TestApp server;
  const std::string prompt = "the quick brown fox";
  const TokenId end = end_of(server, prompt);
  bool stopped = false, used_up = false;
  for (const auto& [n, width] : {std::pair(1, 1), std::pair(1, 4), std::pair(2, 2), std::pair(3, 8)}) {
    for (const Json& early : {Json(false), Json(true), Json("never")}) {
      for (const float penalty : {0.0f, 1.0f, -2.0f}) {
        Json request = beams(prompt, n, width);
        request["early_stopping"] = early;
        request["length_penalty"] = penalty;
        request["stop_token_ids"] = {end};
        GenerateRequest same = request_of(server, prompt, 16);
        same.sampling.stop_token_ids = {end};
        same.beam = {.width = static_cast<std::uint32_t>(width),
                     .returned = static_cast<std::uint32_t>(n),
                     .length_penalty = penalty,
                     .early_stopping = early == true      ? engine::EarlyStopping::on
                                       : early == "never" ? engine::EarlyStopping::never
                                                          : engine::EarlyStopping::off};
        const std::vector<Shown> expected = alone(same);
        const Json answer = server.post("/v1/completions", request);
        ASSERT_EQ(all_shown(answer), expected) << request.dump();
        std::size_t tokens = 0;
        for (const Shown& one : expected) {
          tokens += one.tokens.size();
          stopped = stopped || one.finish == "stop";
          used_up = used_up || one.finish == "length";
        }
        EXPECT_EQ(answer["usage"]["completion_tokens"], tokens);
        EXPECT_EQ(answer["usage"]["prompt_tokens"], same.prompt.size());
      }
    }
  }
  EXPECT_TRUE(stopped && used_up);
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
}

TEST(AppSearch, AChatIsSearchedAsItsRenderedPrompt) {
  TestApp server;
  const Json messages = {{{"role", "user"}, {"content", "hello"}}};
  Json request = shows_all({{"messages", messages}, {"max_tokens", 12}, {"use_beam_search", true}, {"n", 3}}, true);
  request["best_of"] = 5;
  request["temperature"] = 0;
  GenerateRequest same;
  same.prompt = server.post("/tokenize", {{"messages", messages}})["tokens"].get<std::vector<TokenId>>();
  same.max_tokens = 12;
  same.beam = {.width = 5, .returned = 3};
  EXPECT_EQ(all_shown(server.post("/v1/chat/completions", request)), alone(same));
}

TEST(AppSearch, EachPromptIsSearched) {
  TestApp server;
  Json request = beams("ab", 2, 4);
  const std::vector<Shown> first = all_shown(server.post("/v1/completions", request));
  request["prompt"] = "other";
  std::vector<Shown> expected = all_shown(server.post("/v1/completions", request));
  expected.insert(expected.begin(), first.begin(), first.end());
  request["prompt"] = {"ab", "other"};
  EXPECT_EQ(all_shown(server.post("/v1/completions", request)), expected);
}

// The first token of the answer, then the rest; the next answer after the last chunk of the one before.
TEST(AppSearch, AStreamHasTheAnswersInOrder) {
  TestApp server;
  Json request = beams("the quick brown fox", 3, 4);
  request["echo"] = true;
  request.erase("logprobs");
  const Json whole = server.post("/v1/completions", request);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const RawResponse response = server.client().post("/v1/completions", request.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const std::vector<std::string> events = payloads(response.body);
  ASSERT_EQ(events.size(), 8u);   // two chunks an answer, the usage, the end
  for (std::size_t choice = 0; choice < 3; ++choice) {
    const Json first = Json::parse(events[2 * choice])["choices"][0], last = Json::parse(events[2 * choice + 1])["choices"][0];
    EXPECT_EQ(first["index"], choice);
    EXPECT_EQ(last["index"], choice);
    EXPECT_EQ(first["text"].get<std::string>() + last["text"].get<std::string>(), whole["choices"][choice]["text"]);
    EXPECT_TRUE(first["finish_reason"].is_null());
    EXPECT_EQ(last["finish_reason"], whole["choices"][choice]["finish_reason"]);
  }
  EXPECT_EQ(Json::parse(events[6])["usage"], whole["usage"]);
  EXPECT_EQ(events[7], "[DONE]");
}

TEST(AppSearch, WhatAServerCannotHoldIsRefused) {
  TestApp server({}, 16);  // 256 tokens of cache
  Json request = beams("hello", 64, 64);
  const Json refused = server.post("/v1/completions", request, 400);
  EXPECT_EQ(refused["error"]["code"], "request_does_not_fit") << refused.dump();
  server.post("/v1/completions", completion("still served", 1));
}

TEST(AppSearch, AClientThatLeavesTakesItsBeamsAlong) {
  for (const bool stream : {false, true}) {
    TestApp server;
    Json request = beams("hello", 4, 8);
    request["max_tokens"] = 400;
    request["stream"] = stream;
    RawClient client = server.client();
    client.send(http_post("/v1/completions", request));
    ASSERT_TRUE(eventually([&] { return server.gate->steps() > 5; }));
    server.gate->shut();
    server.gate->wait_held();
    client.close();
    ASSERT_TRUE(eventually([&] { return server.metric("kvasir_http_lost_total", "reason=\"peer_closed\"") == 1; }));
    server.gate->open();
    EXPECT_TRUE(eventually([&] { return server.idle(); }));
    EXPECT_EQ(server.app->stats().ended[static_cast<std::size_t>(EndReason::cancelled)], 1u);
  }
}

TEST(AppSearch, MetricsCountTheAnswersThatCameBack) {
  TestApp server;
  const Json answer = server.post("/v1/completions", beams("hello", 2, 4));
  EXPECT_EQ(server.metric("vllm:request_success_total", "length"), 1);
  EXPECT_EQ(server.metric("vllm:generation_tokens_total"), answer["usage"]["completion_tokens"]);
  EXPECT_EQ(server.metric("vllm:request_params_n_sum"), 2);
  EXPECT_EQ(server.metric("vllm:inter_token_latency_seconds_count"), 0);  // all came at once
}

Json samples(const std::string& prompt, int n) {
  return shows_all({{"prompt", prompt}, {"max_tokens", 12}, {"temperature", 1.5}, {"seed", 7}, {"n", n}});
}

TEST(AppSearch, EachOfNSamplesIsTheOneOfItsSeedAndChoice) {
  TestApp server;
  const std::vector<Shown> got = all_shown(server.post("/v1/completions", samples("hello", 5)));
  ASSERT_EQ(got.size(), 5u);
  for (std::uint32_t choice = 0; choice < got.size(); ++choice) {
    GenerateRequest same = request_of(server, "hello", 12);
    same.sampling.temperature = 1.5f;
    same.sampling.seed = 7;
    same.sampling.choice = choice;
    EXPECT_EQ(got[choice], alone(same)[0]) << choice;
  }
  EXPECT_NE(got[0].tokens, got[1].tokens);
}

TEST(AppSearch, BestOfReturnsTheLikeliestSamples) {
  TestApp server;
  Json request = samples("hello", 8);
  request["prompt"] = {"hello", "the quick brown fox"};
  const Json whole = server.post("/v1/completions", request);
  std::vector<Shown> expected = all_shown(whole);
  const auto by_mean = [](const Shown& a, const Shown& b) { return a.mean() > b.mean(); };
  std::stable_sort(expected.begin(), expected.begin() + 8, by_mean);
  std::stable_sort(expected.begin() + 8, expected.end(), by_mean);
  expected.erase(expected.begin() + 11, expected.end());
  expected.erase(expected.begin() + 3, expected.begin() + 8);

  request["n"] = 3;
  request["best_of"] = 8;
  const Json best = server.post("/v1/completions", request);
  EXPECT_EQ(all_shown(best), expected);
  EXPECT_EQ(best["usage"], whole["usage"]);  // of all that were generated

  request.erase("logprobs");
  request["echo"] = true;
  const Json plain = server.post("/v1/completions", request);
  EXPECT_TRUE(plain["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(plain["choices"][3]["text"], "the quick brown fox" + expected[3].text);
}

}  // namespace
}  // namespace kvasir::server::app_test
