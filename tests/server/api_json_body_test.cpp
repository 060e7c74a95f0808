#include "server/api/json_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kvasir::server::api {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ApiError refusal(std::string_view body, const JsonLimits& limits = {}) {
  const auto json = parse_body(body, limits);
  EXPECT_FALSE(json.ok()) << "accepted: " << body.substr(0, 80);
  return json.ok() ? ApiError() : json.error();
}

std::string nested(std::size_t lists, std::string_view field = "x") {
  return "{\"" + std::string(field) + "\":" + std::string(lists, '[') + std::string(lists, ']') + "}";
}

TEST(JsonBody, KeepsValuesAndTheirOrder) {
  const auto json = parse_body(R"({"b":[1,-2,2.5,"ü\n",null,true],"a":{"z":{},"y":[]},"big":18446744073709551615})");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->dump(), R"({"b":[1,-2,2.5,"ü\n",null,true],"a":{"z":{},"y":[]},"big":18446744073709551615})");
}

TEST(JsonBody, DepthIsLimitedBeforeItCosts) {
  EXPECT_TRUE(parse_body(nested(31)).ok());
  for (const std::size_t lists : {std::size_t{32}, std::size_t{10'000}, std::size_t{1'000'000}}) {
    const ApiError error = refusal(nested(lists, "metadata"));
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.code, "invalid_json");
    EXPECT_THAT(error.param, testing::StartsWith("metadata[0][0]"));
    EXPECT_THAT(error.message, HasSubstr("at most 32 levels"));
  }
  // Never closed, and mixed with objects.
  std::string open = "{\"x\":";
  for (int i = 0; i < 100'000; ++i) open += "[{\"y\":";
  EXPECT_THAT(refusal(open).message, HasSubstr("nested deeper than 32 levels"));
}

TEST(JsonBody, SizeIsLimited) {
  const ApiError error = refusal("{\"prompt\":\"" + std::string(2000, 'a') + "\"}", {.max_bytes = 1000});
  EXPECT_EQ(error.status, 413);
  EXPECT_EQ(error.code, "request_too_large");
  EXPECT_THAT(error.message, AllOf(HasSubstr("2013 bytes"), HasSubstr("at most 1000")));
}

TEST(JsonBody, CountsAreLimited) {
  EXPECT_THAT(refusal(R"({"a":[1,2,3,4,5,6,7]})", {.max_values = 8}).message, HasSubstr("more than 8 values"));
  EXPECT_TRUE(parse_body(R"({"a":[1,2,3,4,5,6]})", {.max_values = 8}).ok());
  const ApiError error = refusal(R"({"a":1,"b":2,"c":3})", {.max_members = 2});
  EXPECT_THAT(error.message, HasSubstr("at most 2"));
}

TEST(JsonBody, DuplicateKeysAreRefusedByName) {
  EXPECT_EQ(refusal(R"({"n":1,"model":"a","n":2})").param, "n");
  EXPECT_EQ(refusal(R"({"messages":[{"role":"user"},{"role":"user","content":"a","role":"system"}]})").param,
            "messages[1].role");
  EXPECT_THAT(refusal(R"({"a.b":1,"a.b":1})").message, HasSubstr("a.b is given twice; valid: once"));
}

TEST(JsonBody, WhatIsNotJsonNamesByteAndField) {
  const struct {
    std::string body;
    std::string param;
  } cases[] = {
      {"", "body"},
      {"   ", "body"},
      {"{", "body"},
      {"{\"model\":\"tiny\"", "model"},
      {"{\"temperature\":NaN}", "temperature"},
      {"{\"temperature\":-Infinity}", "temperature"},
      {"{\"temperature\":1e999}", "temperature"},
      {"{\"temperature\":01}", "temperature"},
      {"{\"temperature\":.5}", "temperature"},
      {"{'model':'tiny'}", "body"},
      {"{\"stop\":[\"a\",]}", "stop[1]"},
      {"{\"n\":1,}", "n"},
      {"{\"n\":1}x", "body"},
      {"{\"n\":1}{\"n\":2}", "body"},
      {"{\"n\":/* one */1}", "n"},
      {"{\"prompt\":\"\xff\"}", "prompt"},
      {"{\"prompt\":\"\xc3(\"}", "prompt"},
      {"{\"prompt\":\"\xed\xa0\x80\"}", "prompt"},
      {"{\"prompt\":\"\\ud800\"}", "prompt"},
      {"{\"prompt\":\"\\udc00\"}", "prompt"},
      {"{\"prompt\":\"\\x41\"}", "prompt"},
      {"{\"prompt\":\"a\nb\"}", "prompt"},
      {std::string("{\"prompt\":\"a\0b\"}", 16), "prompt"},
      {std::string("{\"n\":1}\0{", 9), "body"},
      {"{\"prompt\":tru}", "prompt"},
  };
  for (const auto& one : cases) {
    const ApiError error = refusal(one.body);
    EXPECT_EQ(error.status, 400) << one.body;
    EXPECT_EQ(error.code, "invalid_json") << one.body;
    EXPECT_EQ(error.param, one.param) << one.body << ": " << error.message;
    EXPECT_THAT(error.message, HasSubstr("byte")) << one.body;
  }
}

TEST(JsonBody, ErrorsDoNotRepeatTheTextThatWasRead) {
  const ApiError error = refusal("{\"messages\":[{\"role\":\"user\",\"content\":\"my secret \xff\"}]}");
  EXPECT_EQ(error.param, "messages[0].content");
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
}

TEST(JsonBody, TheBodyIsAnObject) {
  for (const char* body : {"[]", "1", "\"text\"", "null", "true", "[{\"model\":\"tiny\"}]"}) {
    const ApiError error = refusal(body);
    EXPECT_EQ(error.code, "invalid_type") << body;
    EXPECT_EQ(error.param, "body") << body;
  }
}

TEST(JsonBody, EveryPrefixOfABodyIsRefused) {
  const std::string body =
      R"({"model":"tiny","messages":[{"role":"user","content":[{"type":"text","text":"ü"}]}],"n":1})";
  ASSERT_TRUE(parse_body(body).ok());
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(refusal(std::string_view(body).substr(0, size)).code, "invalid_json") << size;
  }
}

}  // namespace
}  // namespace kvasir::server::api
