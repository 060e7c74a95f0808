#include "server/api/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/api_fixture.hpp"

namespace kvasir::server::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string chat_with(std::string_view members) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + (members.empty() ? "" : "," + std::string(members)) + "}";
}

ChatRequest chat(std::string_view members, const ModelFacts& facts = api_model().facts) {
  return value_of(parse_with(parse_chat, chat_with(members), facts));
}

CompletionRequest completion(std::string_view body) { return value_of(parse_with(parse_completion, body)); }

TEST(ChatRequest, DefaultsAreTheApis) {
  const ChatRequest request = chat("");
  const RequestOptions& options = request.options;
  EXPECT_EQ(options.model, "tiny");
  EXPECT_EQ(options.temperature, 1);
  EXPECT_EQ(options.top_p, 1);
  EXPECT_EQ(options.top_k, 0u);
  EXPECT_EQ(options.repetition_penalty, 1);
  EXPECT_EQ(options.n, 1u);
  EXPECT_EQ(options.logprobs, -1);
  EXPECT_EQ(options.prompt_logprobs, -1);
  EXPECT_FALSE(options.seed);
  EXPECT_FALSE(options.max_tokens);
  EXPECT_FALSE(options.stream || options.include_usage || options.ignore_eos || options.special_text ||
               options.include_stop);
  EXPECT_TRUE(request.prompt.add_generation_prompt);
  EXPECT_THAT(request.warnings, IsEmpty());
}

TEST(ChatRequest, EveryOptionArrives) {
  const RequestOptions options = chat(R"("model":"alias","temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,
      "presence_penalty":0.5,"frequency_penalty":-0.5,"repetition_penalty":1.1,"logit_bias":{"20":-100,"3":1.5},
      "allowed_token_ids":[1,2],"bad_words":["x","y"],"seed":-1,"max_completion_tokens":16,"max_tokens":16,"min_tokens":2,
      "stop":["a","b"],"stop_token_ids":[7],"include_stop_str_in_output":true,"ignore_eos":true,"skip_special_tokens":false,
      "truncate_prompt_tokens":12,"n":3,"logprobs":true,"top_logprobs":5,"return_token_ids":true,"request_id":"a-1.b:c_d",
      "stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"cache_salt":"s")")
                                     .options;
  EXPECT_EQ(options.model, "alias");
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.top_p, 0.9f);
  EXPECT_EQ(options.top_k, 40u);
  EXPECT_EQ(options.min_p, 0.05f);
  EXPECT_EQ(options.presence_penalty, 0.5f);
  EXPECT_EQ(options.frequency_penalty, -0.5f);
  EXPECT_EQ(options.repetition_penalty, 1.1f);
  ASSERT_EQ(options.logit_bias.size(), 2u);
  EXPECT_EQ(options.logit_bias[0].token, 3);
  EXPECT_EQ(options.logit_bias[0].bias, 1.5f);
  EXPECT_EQ(options.logit_bias[1].token, 20);
  EXPECT_THAT(options.allowed_token_ids, ElementsAre(1, 2));
  EXPECT_THAT(options.bad_words, ElementsAre("x", "y"));
  EXPECT_EQ(options.seed, ~std::uint64_t{0});
  EXPECT_EQ(options.max_tokens, 16u);
  EXPECT_EQ(options.min_tokens, 2u);
  EXPECT_THAT(options.stop, ElementsAre("a", "b"));
  EXPECT_THAT(options.stop_token_ids, ElementsAre(7));
  EXPECT_TRUE(options.include_stop && options.ignore_eos && options.special_text && options.return_token_ids);
  EXPECT_EQ(options.keep_prompt_tokens, 12u);
  EXPECT_EQ(options.n, 3u);
  EXPECT_EQ(options.logprobs, 5);
  EXPECT_TRUE(options.stream && options.include_usage && options.continuous_usage);
  EXPECT_EQ(options.request_id, "a-1.b:c_d");
  EXPECT_EQ(options.cache_salt, "s");
}

TEST(ChatRequest, NullsAndNeutralValuesAsClientsSendThemAreAccepted) {
  const ChatRequest request =
      chat(R"("model":null,"temperature":null,"top_p":null,"n":null,"stop":null,"max_tokens":null,
      "max_completion_tokens":null,"logprobs":null,"top_logprobs":null,"logit_bias":null,"stream":null,"stream_options":null,
      "tools":[],"tool_choice":"none","functions":null,"response_format":{"type":"text"},"best_of":1,"use_beam_search":false,
      "length_penalty":1.0,"early_stopping":false,
      "parallel_tool_calls":true,"user":"u","metadata":{"a":"b"},"store":false,"service_tier":"auto","modalities":["text"],
      "seed":null,"priority":0,"top_k":-1,"stop_token_ids":[],"prompt_cache_key":"k","prompt_cache_retention":"24h")");
  EXPECT_THAT(request.warnings, IsEmpty());
  EXPECT_EQ(request.options.top_k, 0u);
  EXPECT_EQ(request.options.temperature, 1);
}

TEST(ChatRequest, SeedsUseAllSixtyFourBits) {
  EXPECT_EQ(chat(R"("seed":18446744073709551615)").options.seed, ~std::uint64_t{0});
  EXPECT_EQ(chat(R"("seed":-9223372036854775808)").options.seed, std::uint64_t{1} << 63);
  EXPECT_EQ(chat(R"("seed":0)").options.seed, 0u);
}

TEST(ChatRequest, ContentMayComeInPartsAndDevelopersAreTheSystem) {
  const ChatRequest request = value_of(parse_with(parse_chat, R"({"messages":[
      {"role":"developer","content":"Be brief."},
      {"role":"user","name":"ann","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
      {"role":"assistant","content":"","tool_calls":[],"refusal":null},
      {"role":"tool","content":"42","tool_call_id":"t1"}]})"));
  const auto& messages = request.prompt.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "one\ntwo");
  EXPECT_EQ(messages[2].content, "");
  EXPECT_EQ(messages[3].role, "tool");
  EXPECT_THAT(request.warnings, IsEmpty());
}

TEST(ChatRequest, ZeroAlternativesNeedNoLogprobs) {
  EXPECT_EQ(chat(R"("top_logprobs":0)").options.logprobs, -1);
  EXPECT_EQ(chat(R"("logprobs":true)").options.logprobs, 0);
  EXPECT_EQ(chat(R"("logprobs":false,"top_logprobs":0)").options.logprobs, -1);
}

TEST(ChatRequest, AContinuationNeedsNoWordAboutTheGenerationPrompt) {
  const auto request = value_of(
      parse_with(parse_chat, R"({"messages":[{"role":"assistant","content":"a"}],"continue_final_message":true})"));
  EXPECT_TRUE(request.prompt.continue_final_message);
  EXPECT_FALSE(request.prompt.add_generation_prompt);
}

TEST(ChatRequest, SettingsOfTheServerDecide) {
  ModelFacts facts = api_model().facts;
  facts.priority_scheduling = true;
  EXPECT_EQ(chat(R"("priority":-7)", facts).options.priority, -7);
  facts.trust_request_template = true;
  EXPECT_EQ(chat(R"("chat_template":"x")", facts).prompt.chat_template, "x");
  facts.strict = true;
  EXPECT_EQ(parse_with(parse_chat, chat_with(R"("made_up":1)"), facts).error().param, "made_up");
  facts.chat_template = nullptr;
  const auto error = parse_with(parse_chat, chat_with(""), facts).error();
  EXPECT_EQ(error.param, "messages");
  EXPECT_THAT(error.message, HasSubstr("/v1/completions"));
}

TEST(CompletionRequest, PromptsHaveFourShapes) {
  const auto shapes = [](std::string_view body) { return completion(body).prompts; };
  EXPECT_EQ(std::get<std::string>(shapes(R"({"prompt":"a"})").at(0)), "a");
  EXPECT_EQ(shapes(R"({"prompt":["a","b"]})").size(), 2u);
  EXPECT_EQ(std::get<std::string>(shapes(R"({"prompt":["a","b"]})").at(1)), "b");
  EXPECT_THAT(std::get<TokenIds>(shapes(R"({"prompt":[1,2]})").at(0)), ElementsAre(1, 2));
  EXPECT_EQ(shapes(R"({"prompt":[1,2]})").size(), 1u);
  EXPECT_THAT(std::get<TokenIds>(shapes(R"({"prompt":[[1],[2,3]]})").at(1)), ElementsAre(2, 3));
}

// What lm-eval sends for multiple choice.
TEST(CompletionRequest, AnEchoWithLogprobsScoresThePrompt) {
  const CompletionRequest request = completion(
      R"({"model":"tiny","prompt":[[1,2],[3]],"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,"echo":true})");
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.options.logprobs, 1);
  EXPECT_EQ(request.options.prompt_logprobs, 1);
  EXPECT_EQ(completion(R"({"prompt":"a","max_tokens":0,"echo":true})").options.max_tokens, 0u);
  EXPECT_EQ(completion(R"({"prompt":"a","max_tokens":0,"prompt_logprobs":0})").options.prompt_logprobs, 0);
  EXPECT_EQ(completion(R"({"prompt":"a","echo":true,"logprobs":2,"prompt_logprobs":5})").options.prompt_logprobs, 5);
}

// What vllm bench sends.
TEST(CompletionRequest, NullLogprobsAreNone) {
  const CompletionRequest request =
      completion(R"({"model":"tiny","prompt":"a","temperature":0.0,"repetition_penalty":1.0,
      "max_tokens":5,"logprobs":null,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true})");
  EXPECT_EQ(request.options.logprobs, -1);
  EXPECT_TRUE(request.options.include_usage);
  EXPECT_THAT(request.warnings, IsEmpty());
}

TEST(CompletionRequest, ASearchIsOneRequestOfTheEngineWithAllAnswers) {
  const RequestOptions options =
      completion(R"({"prompt":"a","use_beam_search":true,"n":2,"best_of":5,"length_penalty":-0.5,"early_stopping":"never",
      "temperature":0,"seed":1,"top_p":0.9,"logprobs":0,"stop_token_ids":[3],"stream":true})").options;
  EXPECT_EQ(options.beam.width, 5u);
  EXPECT_EQ(options.beam.returned, 2u);
  EXPECT_EQ(options.beam.length_penalty, -0.5f);
  EXPECT_EQ(options.beam.early_stopping, engine::EarlyStopping::never);
  EXPECT_EQ(options.temperature, 0);
  EXPECT_EQ(options.stream_interval, kMaxStreamInterval);
  EXPECT_EQ(options.streams(), 1u);
  EXPECT_EQ(options.sequences(), 5u);
  EXPECT_EQ(chat(R"("use_beam_search":true)").options.beam.width, 1u);
  EXPECT_EQ(chat(R"("use_beam_search":true,"n":4,"early_stopping":true)").options.beam.width, 4u);
}

TEST(CompletionRequest, BestOfSaysHowManySamplesAreGenerated) {
  EXPECT_EQ(completion(R"({"prompt":"a"})").options.samples, 1u);
  EXPECT_EQ(completion(R"({"prompt":"a","n":3,"stream":true})").options.samples, 3u);
  EXPECT_EQ(completion(R"({"prompt":"a","n":3,"best_of":3,"stream":true})").options.samples, 3u);
  EXPECT_EQ(completion(R"({"prompt":"a","n":2,"best_of":7})").options.samples, 7u);
  EXPECT_EQ(chat(R"("n":2,"best_of":2)").options.samples, 2u);
}

TEST(CompletionRequest, UnknownFieldsAreWarnings) {
  EXPECT_THAT(completion(R"({"prompt":"a","made_up":1,"xtc_probability":0.5})").warnings,
              ElementsAre("made_up", "xtc_probability"));
}

}  // namespace
}  // namespace kvasir::server::api
