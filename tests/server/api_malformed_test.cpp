// Malformed requests: each is answered 4xx with the field to blame by name, and the next good request is served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/prompt.hpp"
#include "tests/server/api_fixture.hpp"

namespace kvasir::server::api {
namespace {

using testing::HasSubstr;

// `body` without its outer braces, or all of it if it does not start with a quote. For chat and completions the members
// stand behind a valid conversation or prompt unless they bring their own.
struct Malformed {
  Route route;
  std::string body;
  std::string param;
  std::string_view code;
};

constexpr Route C = Route::chat, T = Route::completions, K = Route::tokenize, D = Route::detokenize;
constexpr std::string_view kType = "invalid_type", kValue = "invalid_value", kMissing = "missing_required_parameter";
constexpr std::string_view kConflict = "conflicting_parameters", kJson = "invalid_json", kNot = "unsupported_parameter";

std::string whole(const Malformed& one) {
  if (!one.body.starts_with('"')) return one.body;
  const bool own = one.body.find("\"messages\"") == 0 || one.body.find("\"prompt\"") == 0;
  if (one.route == C && !own) return R"({"messages":[{"role":"user","content":"hi"}],)" + one.body + "}";
  if (one.route == T && !own) return R"({"prompt":"hi",)" + one.body + "}";
  return "{" + one.body + "}";
}

std::optional<ApiError> refusal(Route route, std::string_view body, const ModelFacts& facts) {
  const auto outcome = [](auto result) {
    return result.ok() ? std::optional<ApiError>() : std::optional(result.error());
  };
  if (route == K) return outcome(parse_with(parse_tokenize, body, facts));
  if (route == D) return outcome(parse_with(parse_detokenize, body, facts));
  if (route == C) {
    const auto request = parse_with(parse_chat, body, facts);
    return request.ok() ? outcome(prepare_chat(*request, facts)) : request.error();
  }
  const auto request = parse_with(parse_completion, body, facts);
  return request.ok() ? outcome(prepare_completion(*request, facts)) : request.error();
}

void expect_served(Route route, const ModelFacts& facts) {
  const char* good = route == C   ? R"({"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":5})"
                     : route == D ? R"({"tokens":[104,105]})"
                                  : R"({"model":"tiny","prompt":"hi"})";
  const auto refused = refusal(route, good, facts);
  EXPECT_FALSE(refused) << refused->message;
}

void expect_refused(const std::vector<Malformed>& cases, const ModelFacts& facts = api_model().facts) {
  for (const Malformed& one : cases) {
    SCOPED_TRACE(one.body.substr(0, 120));
    const auto error = refusal(one.route, whole(one), facts);
    ASSERT_TRUE(error) << "accepted";
    EXPECT_GE(error->status, 400);
    EXPECT_LT(error->status, 500);
    EXPECT_EQ(error->param, one.param) << error->message;
    EXPECT_EQ(error->code, one.code) << error->message;
    EXPECT_THAT(error->message, HasSubstr(one.param));
    EXPECT_LT(error->message.size(), 1000u);
    EXPECT_EQ(error->json()["error"]["param"], one.param);
    expect_served(one.route, facts);
  }
}

TEST(Malformed, Sampling) {
  expect_refused({
      {C, R"("temperature":-0.1)", "temperature", kValue},
      {C, R"("temperature":100.5)", "temperature", kValue},
      {C, R"("temperature":"hot")", "temperature", kType},
      {C, R"("temperature":[1])", "temperature", kType},
      {C, R"("temperature":true)", "temperature", kType},
      {C, R"("temperature":NaN)", "temperature", kJson},
      {C, R"("temperature":1e400)", "temperature", kJson},
      {T, R"("temperature":{})", "temperature", kType},
      {C, R"("top_p":0)", "top_p", kValue},
      {C, R"("top_p":1.0001)", "top_p", kValue},
      {C, R"("top_p":-1)", "top_p", kValue},
      {T, R"("top_p":"0.9")", "top_p", kType},
      {C, R"("top_k":-2)", "top_k", kValue},
      {C, R"("top_k":2147483648)", "top_k", kValue},
      {C, R"("top_k":1.5)", "top_k", kType},
      {T, R"("top_k":"40")", "top_k", kType},
      {C, R"("min_p":-0.1)", "min_p", kValue},
      {C, R"("min_p":1.1)", "min_p", kValue},
      {T, R"("min_p":[])", "min_p", kType},
      {C, R"("presence_penalty":2.1)", "presence_penalty", kValue},
      {C, R"("presence_penalty":-2.1)", "presence_penalty", kValue},
      {T, R"("presence_penalty":"1")", "presence_penalty", kType},
      {C, R"("frequency_penalty":3)", "frequency_penalty", kValue},
      {T, R"("frequency_penalty":-3)", "frequency_penalty", kValue},
      {C, R"("frequency_penalty":false)", "frequency_penalty", kType},
      {C, R"("repetition_penalty":0)", "repetition_penalty", kValue},
      {C, R"("repetition_penalty":-1)", "repetition_penalty", kValue},
      {T, R"("repetition_penalty":11)", "repetition_penalty", kValue},
      {C, R"("seed":1.5)", "seed", kType},
      {C, R"("seed":"7")", "seed", kType},
      {C, R"("seed":18446744073709551616)", "seed", kValue},
      {T, R"("seed":1e300)", "seed", kValue},
      {C, R"("logit_bias":[1])", "logit_bias", kType},
      {C, R"("logit_bias":{"x":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"-1":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"5 ":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"259":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"99999999999999999999":1})", "logit_bias", kValue},
      {C, R"("logit_bias":{"5":101})", "logit_bias[\"5\"]", kValue},
      {T, R"("logit_bias":{"5":-100.5})", "logit_bias[\"5\"]", kValue},
      {T, R"("logit_bias":{"5":"1"})", "logit_bias[\"5\"]", kType},
      {T, R"("logit_bias":{"5":null})", "logit_bias[\"5\"]", kType},
      {C, R"("logit_bias":{"7":1,"07":2})", "logit_bias", kConflict},
      {C, R"("logit_bias":{"7":1,"7":2})", "logit_bias.7", kJson},
      {C, R"("allowed_token_ids":[])", "allowed_token_ids", kValue},
      {C, R"("allowed_token_ids":5)", "allowed_token_ids", kType},
      {C, R"("allowed_token_ids":[1,259])", "allowed_token_ids[1]", kValue},
      {C, R"("allowed_token_ids":[-1])", "allowed_token_ids[0]", kValue},
      {T, R"("allowed_token_ids":["1"])", "allowed_token_ids[0]", kType},
      {C, R"("bad_words":"no")", "bad_words", kType},
      {C, R"("bad_words":[""])", "bad_words[0]", kValue},
      {C, R"("bad_words":["a",2])", "bad_words[1]", kType},
  });
}

TEST(Malformed, Limits) {
  expect_refused({
      {C, R"("max_tokens":0)", "max_tokens", kValue},
      {C, R"("max_tokens":-1)", "max_tokens", kValue},
      {C, R"("max_tokens":-2)", "max_tokens", kValue},
      {C, R"("max_tokens":2147483648)", "max_tokens", kValue},
      {C, R"("max_tokens":1e308)", "max_tokens", kValue},
      {C, R"("max_tokens":"12")", "max_tokens", kType},
      {C, R"("max_tokens":1.5)", "max_tokens", kType},
      {C, R"("max_tokens":[10])", "max_tokens", kType},
      {T, R"("max_tokens":0)", "max_tokens", kValue},
      {T, R"("max_tokens":-5)", "max_tokens", kValue},
      {C, R"("max_completion_tokens":0)", "max_completion_tokens", kValue},
      {C, R"("max_completion_tokens":true)", "max_completion_tokens", kType},
      {C, R"("max_completion_tokens":5,"max_tokens":6)", "max_completion_tokens", kConflict},
      {C, R"("min_tokens":-1)", "min_tokens", kValue},
      {C, R"("min_tokens":6,"max_tokens":5)", "min_tokens", kConflict},
      {T, R"("min_tokens":"1")", "min_tokens", kType},
      {C, R"("max_tokens":2147483647)", "messages", "context_length_exceeded"},
      {T, R"("max_tokens":1023)", "prompt", "context_length_exceeded"},
      {C, R"("stop":"")", "stop", kValue},
      {C, R"("stop":5)", "stop", kType},
      {C, R"("stop":{"a":1})", "stop", kType},
      {C, R"("stop":["a",""])", "stop[1]", kValue},
      {C, R"("stop":["a",null])", "stop[1]", kType},
      {C, R"("stop":[["a"]])", "stop[0]", kType},
      {T, R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "stop", kValue},
      {T, "\"stop\":\"" + std::string(1025, 's') + "\"", "stop", kValue},
      {C, R"("stop_token_ids":7)", "stop_token_ids", kType},
      {C, R"("stop_token_ids":[259])", "stop_token_ids[0]", kValue},
      {C, R"("stop_token_ids":[1.5])", "stop_token_ids[0]", kType},
      {C, R"("include_stop_str_in_output":"yes")", "include_stop_str_in_output", kType},
      {C, R"("ignore_eos":1)", "ignore_eos", kType},
      {T, R"("ignore_eos":"true")", "ignore_eos", kType},
      {T, R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens", kValue},
      {T, R"("truncate_prompt_tokens":-2)", "truncate_prompt_tokens", kValue},
      {C, R"("truncate_prompt_tokens":"all")", "truncate_prompt_tokens", kType},
  });
}

TEST(Malformed, WhatComesBack) {
  expect_refused({
      {C, R"("n":0)", "n", kValue},
      {C, R"("n":-1)", "n", kValue},
      {C, R"("n":129)", "n", kValue},
      {C, R"("n":"2")", "n", kType},
      {T, R"("n":1.5)", "n", kType},
      {T,
       R"({"prompt":[)" +
           [] {
             std::string s;
             for (int i = 0; i < 33; ++i) s += i ? ",\"a\"" : "\"a\"";
             return s;
           }() +
           R"(],"n":128})",
       "n", kValue},
      {C, R"("stream":"true")", "stream", kType},
      {C, R"("stream":1)", "stream", kType},
      {C, R"("stream_options":{"include_usage":true})", "stream_options", kConflict},
      {T, R"("stream":false,"stream_options":{})", "stream_options", kConflict},
      {C, R"("stream":true,"stream_options":true)", "stream_options", kType},
      {C, R"("stream":true,"stream_options":{"include_usage":"yes"})", "stream_options.include_usage", kType},
      {T, R"("stream":true,"stream_options":{"continuous_usage_stats":1})", "stream_options.continuous_usage_stats",
       kType},
      {C, R"("stream":true,"stream_options":{"include_obfuscation":"no"})", "stream_options.include_obfuscation",
       kType},
      {C, R"("logprobs":5)", "logprobs", kType},
      {C, R"("logprobs":"true")", "logprobs", kType},
      {C, R"("logprobs":true,"top_logprobs":21)", "top_logprobs", kValue},
      {C, R"("logprobs":true,"top_logprobs":-1)", "top_logprobs", kValue},
      {C, R"("logprobs":true,"top_logprobs":"5")", "top_logprobs", kType},
      {C, R"("top_logprobs":5)", "top_logprobs", kConflict},
      {C, R"("logprobs":false,"top_logprobs":1)", "top_logprobs", kConflict},
      {T, R"("logprobs":true)", "logprobs", kType},
      {T, R"("logprobs":21)", "logprobs", kValue},
      {T, R"("logprobs":-1)", "logprobs", kValue},
      {T, R"("prompt_logprobs":21)", "prompt_logprobs", kValue},
      {T, R"("prompt_logprobs":true)", "prompt_logprobs", kType},
      {T, R"("prompt_logprobs":1,"stream":true)", "prompt_logprobs", kConflict},
      {C, R"("prompt_logprobs":0,"stream":true)", "prompt_logprobs", kConflict},
      {T, R"("echo":"yes")", "echo", kType},
      {T, R"("echo":1)", "echo", kType},
      {C, R"("echo":true)", "echo", kNot},
      {C, R"("skip_special_tokens":0)", "skip_special_tokens", kType},
      {C, R"("return_token_ids":"all")", "return_token_ids", kType},
      {C, R"("priority":1)", "priority", "unsupported_value"},
      {T, R"("priority":-1)", "priority", "unsupported_value"},
      {C, R"("priority":1001)", "priority", kValue},
      {C, R"("priority":2147483648)", "priority", kValue},
      {C, R"("priority":"high")", "priority", kType},
      {C, R"("request_id":"a b")", "request_id", kValue},
      {C, R"("request_id":"a\r\nSet-Cookie: x")", "request_id", kValue},
      {C, R"("request_id":"")", "request_id", kValue},
      {C, "\"request_id\":\"" + std::string(129, 'r') + "\"", "request_id", kValue},
      {C, R"("request_id":5)", "request_id", kType},
      {C, R"("cache_salt":"")", "cache_salt", kValue},
      {C, "\"cache_salt\":\"" + std::string(1025, 's') + "\"", "cache_salt", kValue},
      {C, R"("service_tier":"gold")", "service_tier", kValue},
      {C, R"("prompt_cache_retention":"1h")", "prompt_cache_retention", kValue},
      {C, R"("verbosity":"loud")", "verbosity", kValue},
      {C, R"("user":5)", "user", kType},
      {C, R"("metadata":"x")", "metadata", kType},
      {C, R"("store":"yes")", "store", kType},
  });
}

TEST(Malformed, Searches) {
  const auto beams = [](Route route, const std::string& with, std::string param, std::string_view code = kConflict) {
    return Malformed{route, R"("use_beam_search":true,"max_tokens":4,)" + with, std::move(param), code};
  };
  expect_refused({
      {C, R"("use_beam_search":1)", "use_beam_search", kType},
      {T, R"("use_beam_search":"yes")", "use_beam_search", kType},
      {C, R"("length_penalty":2)", "length_penalty", kConflict},
      {T, R"("length_penalty":0.5,"use_beam_search":false)", "length_penalty", kConflict},
      {T, R"("length_penalty":-11)", "length_penalty", kValue},
      {T, R"("length_penalty":"1")", "length_penalty", kType},
      {C, R"("early_stopping":true)", "early_stopping", kConflict},
      {T, R"("early_stopping":"never")", "early_stopping", kConflict},
      {T, R"("early_stopping":"always")", "early_stopping", kValue},
      {T, R"("early_stopping":1)", "early_stopping", kType},
      {T, R"("best_of":0)", "best_of", kValue},
      {T, R"("best_of":129)", "best_of", kValue},
      {T, R"("best_of":"2")", "best_of", kType},
      {T, R"("best_of":2,"n":3)", "best_of", kConflict},
      {T, R"("best_of":2,"stream":true)", "best_of", kConflict},
      {C, R"("best_of":2)", "best_of", kConflict},
      {C, R"("best_of":1,"n":2)", "best_of", kConflict},
      beams(T, R"("best_of":2,"n":3)", "best_of"),
      beams(C, R"("best_of":65)", "best_of", kValue),
      beams(C, R"("n":65)", "n", kValue),
      beams(C, R"("temperature":0.7)", "temperature"),
      beams(T, R"("presence_penalty":1)", "presence_penalty"),
      beams(C, R"("frequency_penalty":-1)", "frequency_penalty"),
      beams(T, R"("repetition_penalty":1.1)", "repetition_penalty"),
      beams(C, R"("logit_bias":{"5":1})", "logit_bias"),
      beams(T, R"("allowed_token_ids":[5])", "allowed_token_ids"),
      beams(C, R"("bad_words":["no"])", "bad_words"),
      beams(T, R"("min_tokens":2)", "min_tokens"),
      beams(C, R"("stop":"end")", "stop"),
      beams(C, R"("logprobs":true,"top_logprobs":1)", "top_logprobs"),
      beams(T, R"("logprobs":1)", "logprobs"),
      beams(T, R"("prompt_logprobs":0)", "prompt_logprobs"),
      beams(T, R"("echo":true,"logprobs":0)", "echo"),
      {T, R"("use_beam_search":true,"echo":true,"max_tokens":0)", "max_tokens", kConflict},
  });
  std::string prompts;
  for (int i = 0; i < 129; ++i) prompts += i ? ",\"a\"" : "\"a\"";
  expect_refused({{T, R"("prompt":[)" + prompts + R"(],"best_of":32)", "best_of", kValue},
                  {T, R"("prompt":[)" + prompts + R"(],"use_beam_search":true,"best_of":32)", "best_of", kValue}});
}

TEST(Malformed, NotSupported) {
  expect_refused({
      {C, R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools", kNot},
      {C, R"("tools":"all")", "tools", kNot},
      {C, R"("tool_choice":"auto")", "tool_choice", kNot},
      {C, R"("tool_choice":"required")", "tool_choice", kNot},
      {C, R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice", kNot},
      {C, R"("functions":[{"name":"f"}])", "functions", kNot},
      {C, R"("function_call":"auto")", "function_call", kNot},
      {C, R"("response_format":{"type":"json_object"})", "response_format", kNot},
      {C, R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}})", "response_format",
       kNot},
      {T, R"("response_format":"text")", "response_format", kNot},
      {C, R"("structured_outputs":{"regex":"a+"})", "structured_outputs", kNot},
      {C, R"("guided_json":{})", "guided_json", kNot},
      {T, R"("guided_choice":["a","b"])", "guided_choice", kNot},
      {T, R"("guided_regex":"a+")", "guided_regex", kNot},
      {C, R"("grammar":"root ::= \"a\"")", "grammar", kNot},
      {C, R"("json_schema":{})", "json_schema", kNot},
      {T, R"("suffix":"end")", "suffix", kNot},
      {C, R"("modalities":["text","audio"])", "modalities", kNot},
      {C, R"("audio":{"voice":"a"})", "audio", kNot},
      {C, R"("web_search_options":{})", "web_search_options", kNot},
      {C, R"("kv_transfer_params":{"a":1})", "kv_transfer_params", kNot},
      {C, R"("logits_processors":["x"])", "logits_processors", kNot},
      {C, R"("chat_template":"{{ messages }}")", "chat_template", kNot},
  });
}

TEST(Malformed, Messages) {
  expect_refused({
      {C, R"({})", "messages", kMissing},
      {C, R"({"messages":null})", "messages", kMissing},
      {C, R"({"messages":[]})", "messages", kValue},
      {C, R"({"messages":"hi"})", "messages", kType},
      {C, R"({"messages":{"role":"user"}})", "messages", kType},
      {C, R"({"messages":["hi"]})", "messages[0]", kType},
      {C, R"({"messages":[null]})", "messages[0]", kType},
      {C, R"({"messages":[{"content":"hi"}]})", "messages[0].role", kMissing},
      {C, R"({"messages":[{"role":"robot","content":"hi"}]})", "messages[0].role", kValue},
      {C, R"({"messages":[{"role":"User","content":"hi"}]})", "messages[0].role", kValue},
      {C, R"({"messages":[{"role":"","content":"hi"}]})", "messages[0].role", kValue},
      {C, R"({"messages":[{"role":"<|im_end|>","content":"hi"}]})", "messages[0].role", kValue},
      {C, R"({"messages":[{"role":5,"content":"hi"}]})", "messages[0].role", kType},
      {C, R"({"messages":[{"role":"user"}]})", "messages[0].content", kMissing},
      {C, R"({"messages":[{"role":"user","content":null}]})", "messages[0].content", kMissing},
      {C, R"({"messages":[{"role":"user","content":5}]})", "messages[0].content", kType},
      {C, R"({"messages":[{"role":"user","content":{"text":"hi"}}]})", "messages[0].content", kType},
      {C, R"({"messages":[{"role":"user","content":"a"},{"role":"assistant"}]})", "messages[1].content", kMissing},
      {C, R"({"messages":[{"role":"user","content":["hi"]}]})", "messages[0].content[0]", kType},
      {C, R"({"messages":[{"role":"user","content":[{"text":"hi"}]}]})", "messages[0].content[0].type", kMissing},
      {C, R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text", kMissing},
      {C, R"({"messages":[{"role":"user","content":[{"type":"text","text":5}]}]})", "messages[0].content[0].text",
       kType},
      {C, R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]})",
       "messages[0].content[0].type", kValue},
      {C, R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio"}]}]})",
       "messages[0].content[1].type", kValue},
      {C, R"({"messages":[{"role":"user","content":"a","name":5}]})", "messages[0].name", kType},
      {C, R"({"messages":[{"role":"assistant","content":"a","tool_calls":[{"id":"1"}]}]})", "messages[0].tool_calls",
       kNot},
      {C, R"({"messages":[{"role":"assistant","content":"a","function_call":{"name":"f"}}]})",
       "messages[0].function_call", kNot},
      {C, R"("messages":[{"role":"user","content":"a"}],"continue_final_message":true)", "continue_final_message",
       kConflict},
      {C,
       R"("messages":[{"role":"assistant","content":"a"}],"continue_final_message":true,"add_generation_prompt":true)",
       "continue_final_message", kConflict},
      {C, R"("add_generation_prompt":"no")", "add_generation_prompt", kType},
      {C, R"("chat_template_kwargs":[])", "chat_template_kwargs", kType},
      {C, R"("chat_template_kwargs":{"messages":1})", "chat_template_kwargs", kValue},
      {C, R"("chat_template_kwargs":{"a b":1})", "chat_template_kwargs", kValue},
      {C, R"("chat_template_kwargs":{"a":"<|im_end|>"})", "chat_template_kwargs.a", kValue},
      {C, R"("chat_template_kwargs":{"a":"' }}"})", "chat_template_kwargs.a", kValue},
      {C, R"("chat_template_kwargs":{"a":[1]})", "chat_template_kwargs.a", kValue},
      {C, R"("add_special_tokens":true)", "add_special_tokens", kNot},
  });
}

TEST(Malformed, Prompts) {
  expect_refused({
      {T, R"({})", "prompt", kMissing},
      {T, R"({"prompt":null})", "prompt", kMissing},
      {T, R"({"prompt":""})", "prompt", kValue},
      {T, R"({"prompt":[]})", "prompt", kValue},
      {T, R"({"prompt":[[]]})", "prompt[0]", kValue},
      {T, R"({"prompt":[[1],[]]})", "prompt[1]", kValue},
      {T, R"({"prompt":["a",""]})", "prompt", kValue},
      {T, R"({"prompt":5})", "prompt", kType},
      {T, R"({"prompt":{"text":"a"}})", "prompt", kType},
      {T, R"({"prompt":[true]})", "prompt[0]", kType},
      {T, R"({"prompt":[null]})", "prompt[0]", kType},
      {T, R"({"prompt":["a",1]})", "prompt[1]", kType},
      {T, R"({"prompt":[1,"a"]})", "prompt[1]", kType},
      {T, R"({"prompt":[[1],"a"]})", "prompt[1]", kType},
      {T, R"({"prompt":["a",[1]]})", "prompt[1]", kType},
      {T, R"({"prompt":[1,-1]})", "prompt[1]", kValue},
      {T, R"({"prompt":[259]})", "prompt[0]", kValue},
      {T, R"({"prompt":[1.5]})", "prompt[0]", kType},
      {T, R"({"prompt":[[1],[2,259]]})", "prompt[1][1]", kValue},
      {T, R"({"prompt":[[1,[2]]]})", "prompt[0][1]", kType},
      {T, R"("add_special_tokens":"no")", "add_special_tokens", kType},
      {T, R"("parse_special":1)", "parse_special", kType},
      {K, R"({})", "prompt", kMissing},
      {K, R"({"prompt":["a"]})", "prompt", kType},
      {K, R"({"prompt":"a","messages":[{"role":"user","content":"b"}]})", "prompt", kConflict},
      {K, R"({"prompt":"a","return_token_strs":1})", "return_token_strs", kType},
      {K, R"({"messages":[]})", "messages", kValue},
      {D, R"({})", "tokens", kMissing},
      {D, R"({"tokens":"1"})", "tokens", kType},
      {D, R"({"tokens":[259]})", "tokens[0]", kValue},
      {D, R"({"tokens":[[1]]})", "tokens[0]", kType},
  });
}

TEST(Malformed, ModelAndEncoding) {
  std::string deep = "{\"metadata\":";
  for (int i = 0; i < 10'000; ++i) deep += "{\"a\":";
  expect_refused({
      {C, R"("model":"gpt-4o")", "model", "model_not_found"},
      {T, R"("model":"TINY")", "model", "model_not_found"},
      {C, R"("model":"")", "model", kValue},
      {C, R"("model":5)", "model", kType},
      {C, R"("model":["tiny"])", "model", kType},
      {C, "\"model\":\"" + std::string(100'000, 'm') + "\"", "model", "model_not_found"},
      {C, "[]", "body", kType},
      {C, "null", "body", kType},
      {C, "hello", "body", kJson},
      {C, "", "body", kJson},
      {C, R"({"messages":[{"role":"user","content":"hi"}])", "messages", kJson},
      {C, R"({"messages":[{"role":"user","content":"hi"}]}})", "body", kJson},
      {C, "\"user\":\"\xff\xfe\"", "user", kJson},
      {C, R"("user":"\ud83d")", "user", kJson},
      {T, "{\"prompt\":\"\xf0\x9f\x98\"}", "prompt", kJson},
      {C, R"("n":1,"n":1)", "n", kJson},
      {C, deep, "metadata.a.a.a...", kJson},
  });
  EXPECT_EQ(refusal(C, R"({"model":"gpt-4o","messages":[]})", api_model().facts)->status, 404);
}

}  // namespace
}  // namespace kvasir::server::api
