// The wire, byte for byte: what clients read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "server/api/chat_answer.hpp"
#include "server/api/completion_answer.hpp"
#include "tests/server/api_fixture.hpp"
#include "text/detokenizer.hpp"

namespace kvasir::server::api {
namespace {

using engine::FinishReason;
using engine::TokenLogprob;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const AnswerHead kChatHead = {"chatcmpl-1", 1700000000, "tiny", "fp"};
const AnswerHead kTextHead = {"cmpl-1", 1700000000, "tiny", "fp"};

ChatContext chat_context(RequestOptions options = {}) {
  return {kChatHead, std::move(options), {.ids = bytes("abc")}, api_model().tokenizer.get()};
}

CompletionContext text_context(std::vector<std::string> prompts, RequestOptions options = {}, bool echo = false) {
  CompletionContext context = {kTextHead, std::move(options), echo, {}, api_model().tokenizer.get()};
  for (const std::string& prompt : prompts)
    context.prompts.push_back({.ids = bytes(prompt), .text = echo ? prompt : ""});
  return context;
}

// The token of an ASCII text of one byte, the `count`-th of its answer.
ChoiceEvent event(std::string_view text, std::uint32_t count, FinishReason finish = FinishReason::none,
                  std::uint32_t index = 0) {
  ChoiceEvent out;
  out.index = index;
  out.token = text.empty() ? kImEnd : static_cast<unsigned char>(text[0]);
  out.text = text;
  out.finish = finish;
  out.prompt_tokens = 3;
  out.completion_tokens = count;
  return out;
}

ChoiceEvent with_logprob(ChoiceEvent out, float logprob, std::span<const TokenLogprob> top = {}) {
  out.has_logprob = true;
  out.logprob = logprob;
  out.top_logprobs = top;
  return out;
}

template <class Stream>
std::vector<std::string> payloads(Stream stream, const std::vector<ChoiceEvent>& events) {
  std::vector<std::string> out;
  for (const ChoiceEvent& one : events) stream.push(one, out);
  return out;
}

constexpr std::string_view kChunk =
    R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"tiny","system_fingerprint":"fp",)";
constexpr std::string_view kTextChunk =
    R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"tiny","system_fingerprint":"fp",)";

std::string chunk(std::string_view rest) { return std::string(kChunk) + std::string(rest); }
std::string text_chunk(std::string_view rest) { return std::string(kTextChunk) + std::string(rest); }

TEST(ChatWire, WholeAnswer) {
  const ChatContext context = chat_context();
  ChatAnswer answer(context);
  answer.push(event("h", 1));
  EXPECT_FALSE(answer.finished());
  answer.push(event("i", 2));
  answer.push(event("", 3, FinishReason::stop));
  ASSERT_TRUE(answer.finished());
  EXPECT_EQ(
      answer.json().dump(),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tiny","system_fingerprint":"fp",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null},"logprobs":null,)"
      R"("finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6,)"
      R"("prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0}}})");
}

TEST(ChatWire, Stream) {
  const ChatContext context = chat_context();
  EXPECT_THAT(
      payloads(ChatStream(context), {event("h", 1), event("i", 2), event("", 3, FinishReason::stop)}),
      ElementsAre(
          chunk(
              R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})"),
          chunk(R"("choices":[{"index":0,"delta":{"content":"h"},"logprobs":null,"finish_reason":null}]})"),
          chunk(R"("choices":[{"index":0,"delta":{"content":"i"},"logprobs":null,"finish_reason":null}]})"),
          chunk(R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null}]})"),
          "[DONE]"));
}

TEST(ChatWire, UsageComesLastInAChunkWithoutChoices) {
  RequestOptions options;
  options.stream = options.include_usage = true;
  const ChatContext context = chat_context(options);
  const auto sent = payloads(ChatStream(context), {event("h", 1), event("i", 2, FinishReason::length)});
  ASSERT_EQ(sent.size(), 5u);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(sent[i], testing::EndsWith(R"(,"usage":null})"));
  EXPECT_EQ(sent[3], chunk(R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
                           R"("prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0}}})"));
  EXPECT_EQ(sent[4], "[DONE]");
}

TEST(ChatWire, ContinuousUsageIsInEveryChunk) {
  RequestOptions options;
  options.continuous_usage = true;
  const ChatContext context = chat_context(options);
  const auto sent = payloads(ChatStream(context), {event("h", 1), event("i", 2, FinishReason::length)});
  ASSERT_EQ(sent.size(), 4u);  // no chunk of its own: include_usage asks for that
  const int completion[] = {1, 1, 2};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Json::parse(sent[i])["usage"]["completion_tokens"], completion[i]);
}

TEST(ChatWire, EveryChoiceHasItsRoleBeforeItsFirstTokenAndTheUsageCountsThePromptOnce) {
  RequestOptions options;
  options.n = 2;
  options.include_usage = true;
  const ChatContext context = chat_context(options);
  const auto sent =
      payloads(ChatStream(context), {event("a", 1, FinishReason::none, 1), event("b", 1, FinishReason::none, 0),
                                     event("c", 2, FinishReason::length, 0), event("d", 2, FinishReason::length, 1)});
  std::vector<std::string> seen;
  for (const std::string& payload : sent) {
    if (payload == "[DONE]") break;
    const Json json = Json::parse(payload);
    if (json["choices"].empty()) {
      EXPECT_EQ(json["usage"]["prompt_tokens"], 3);
      EXPECT_EQ(json["usage"]["completion_tokens"], 4);
      continue;
    }
    const Json& choice = json["choices"][0];
    seen.push_back(choice["index"].dump() +
                   (choice["delta"].contains("role") ? "role" : choice["delta"]["content"].get<std::string>()));
  }
  EXPECT_THAT(seen, ElementsAre("1role", "1a", "0role", "0b", "0c", "1d"));
  EXPECT_EQ(sent.back(), "[DONE]");
}

TEST(ChatWire, ATokenWhoseTextWaitsSendsNothingButTheFirstSendsTheRole) {
  const ChatContext context = chat_context();
  ChoiceEvent waiting = event("h", 1);
  waiting.text = "";
  ChatStream stream(context);
  std::vector<std::string> sent;
  stream.push(waiting, sent);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_THAT(sent[0], HasSubstr("\"role\""));
  stream.push(waiting, sent);
  EXPECT_EQ(sent.size(), 1u);
}

TEST(ChatWire, Logprobs) {
  RequestOptions options;
  options.logprobs = 2;
  const ChatContext context = chat_context(options);
  const std::vector<TokenLogprob> top = {{'h', -0.5f}, {0xc3, -1.5f}};
  const ChoiceEvent one = with_logprob(event("h", 1, FinishReason::length), -0.5f, top);
  const std::string content =
      R"({"token":"h","logprob":-0.5,"bytes":[104],"top_logprobs":[{"token":"h","logprob":-0.5,"bytes":[104]},)"
      R"({"token":"bytes:\\xc3","logprob":-1.5,"bytes":[195]}]})";
  ChatAnswer answer(context);
  answer.push(one);
  EXPECT_EQ(answer.json()["choices"][0]["logprobs"].dump(), R"({"content":[)" + content + R"(],"refusal":null})");
  const auto sent = payloads(ChatStream(context), {one});
  EXPECT_THAT(sent[1], HasSubstr(R"("logprobs":{"content":[)" + content + R"(],"refusal":null})"));
  EXPECT_THAT(sent[0], HasSubstr(R"("logprobs":null)"));
}

TEST(ChatWire, TokenIdsAndStopReasons) {
  RequestOptions options;
  options.return_token_ids = true;
  const ChatContext context = chat_context(options);
  ChoiceEvent last = event("i", 2, FinishReason::stop);
  last.stop_text = "END";
  const auto sent = payloads(ChatStream(context), {event("h", 1), last});
  EXPECT_EQ(Json::parse(sent[0])["prompt_token_ids"], Json(bytes("abc")));
  EXPECT_FALSE(Json::parse(sent[1]).contains("prompt_token_ids"));
  EXPECT_EQ(Json::parse(sent[1])["choices"][0]["token_ids"], Json::array({104}));
  EXPECT_EQ(Json::parse(sent[2])["choices"][0]["stop_reason"], "END");
  last.stop_text = "";
  last.stop_token = 42;
  ChatAnswer answer(context);
  answer.push(event("h", 1));
  answer.push(last);
  const Json json = answer.json();
  EXPECT_EQ(json["choices"][0]["token_ids"], Json::array({104, 105}));
  EXPECT_EQ(json["choices"][0]["stop_reason"], 42);
  EXPECT_EQ(json["prompt_token_ids"].size(), 3u);
}

TEST(ChatWire, AFailureInTheMiddleIsAnErrorEventAndTheEnd) {
  RequestOptions options;
  options.n = 2;
  const ChatContext context = chat_context(options);
  ChoiceEvent failed;
  failed.index = 1;
  failed.finish = FinishReason::error;
  failed.error = "a block failed its check";
  const auto sent = payloads(ChatStream(context), {event("h", 1), failed, event("i", 2)});
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(
      sent[2],
      R"({"error":{"message":"a block failed its check","type":"server_error","param":null,"code":"internal_error"}})");
  ChatAnswer answer(context);
  answer.push(event("h", 1, FinishReason::length));
  answer.push(failed);
  ASSERT_TRUE(answer.finished() && answer.failure());
  EXPECT_EQ(answer.failure()->status, 500);
  std::vector<std::string> out;
  ChatStream stream(context);
  stream.fail(overloaded("shutting down", 3), out);
  stream.fail(overloaded("again", 3), out);
  EXPECT_EQ(out.size(), 1u);
  EXPECT_TRUE(stream.closed());
}

TEST(ChatWire, PromptLogprobs) {
  RequestOptions options;
  options.prompt_logprobs = 1;
  const ChatContext context = chat_context(options);
  ChatAnswer answer(context);
  answer.prompt_scored({{}, {true, -2.0f, {{'x', -0.25f}}}, {true, -0.5f, {{'c', -0.5f}}}});
  answer.push(event("h", 1, FinishReason::length));
  EXPECT_EQ(
      answer.json()["prompt_logprobs"].dump(),
      R"([null,{"120":{"logprob":-0.25,"rank":1,"decoded_token":"x"},"98":{"logprob":-2.0,"rank":null,"decoded_token":"b"}},)"
      R"({"99":{"logprob":-0.5,"rank":1,"decoded_token":"c"}}])");
}

TEST(CompletionWire, WholeAnswerOfSeveralPrompts) {
  RequestOptions options;
  options.n = 2;
  const CompletionContext context = text_context({"abc", "xyz"}, options);
  CompletionAnswer answer(context);
  for (std::uint32_t i : {3u, 0u, 2u, 1u})
    answer.push(event(std::string_view("pqrs").substr(i, 1), 1, FinishReason::length, i));
  ASSERT_TRUE(answer.finished());
  const Json json = answer.take_json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["choices"][0].dump(),
            R"({"index":0,"text":"p","logprobs":null,"finish_reason":"length","stop_reason":null})");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(json["choices"][i]["index"], i);
  EXPECT_EQ(json["choices"][3]["text"], "s");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 6);
  EXPECT_EQ(json["usage"]["completion_tokens"], 4);
}

TEST(CompletionWire, Stream) {
  RequestOptions options;
  options.include_usage = true;
  const CompletionContext context = text_context({"abc"}, options);
  EXPECT_THAT(
      payloads(CompletionStream(context), {event("h", 1), event("", 2, FinishReason::stop)}),
      ElementsAre(
          text_chunk(R"("choices":[{"index":0,"text":"h","logprobs":null,"finish_reason":null}],"usage":null})"),
          text_chunk(
              R"("choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":null})"),
          text_chunk(R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
                     R"("prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0}}})"),
          "[DONE]"));
}

// The scores of a prompt, in one list with the answer's: what lm-eval reads.
TEST(CompletionWire, EchoWithLogprobs) {
  RequestOptions options;
  options.logprobs = options.prompt_logprobs = 1;
  const CompletionContext context = text_context({"a\xC3\xBC"}, options, true);
  const std::vector<PositionLogprobs> scored = {{}, {true, -1.5f, {{'x', -0.5f}}}, {true, -0.25f, {{0xbc, -0.25f}}}};
  const std::vector<TokenLogprob> top = {{'h', -0.125f}};
  const ChoiceEvent one = with_logprob(event("h", 1), -0.125f, top);
  const ChoiceEvent last = with_logprob(event("i", 2, FinishReason::length), -INFINITY);
  CompletionAnswer answer(context);
  answer.prompt_scored(0, scored);
  answer.push(one);
  answer.push(last);
  const Json json = answer.take_json();
  EXPECT_EQ(json["choices"][0]["text"], "aühi");
  EXPECT_EQ(json["choices"][0]["logprobs"].dump(),
            R"({"text_offset":[0,1,1,2,3],"token_logprobs":[null,-1.5,-0.25,-0.125,-9999.0],)"
            R"("tokens":["a","bytes:\\xc3","bytes:\\xbc","h","i"],)"
            R"("top_logprobs":[null,{"x":-0.5,"bytes:\\xc3":-1.5},{"bytes:\\xbc":-0.25},{"h":-0.125},{"i":-9999.0}]})");
  EXPECT_FALSE(json["choices"][0].contains("prompt_logprobs"));

  CompletionStream stream(context);
  stream.prompt_scored(0, scored);
  std::vector<std::string> sent;
  stream.push(one, sent);
  stream.push(last, sent);
  Json joined = {{"text_offset", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"tokens", Json::array()},
                 {"top_logprobs", Json::array()}};
  std::string text;
  for (std::size_t i = 0; i + 1 < sent.size(); ++i) {
    const Json choice = Json::parse(sent[i])["choices"][0];
    text += choice["text"].get<std::string>();
    for (auto& [name, list] : joined.items())
      list.insert(list.end(), choice["logprobs"][name].begin(), choice["logprobs"][name].end());
  }
  EXPECT_EQ(text, "aühi");
  EXPECT_EQ(joined, json["choices"][0]["logprobs"]);
}

TEST(CompletionWire, AScoredPromptNeedsNoToken) {
  RequestOptions options;
  options.logprobs = options.prompt_logprobs = 0;
  options.max_tokens = 0;
  const CompletionContext context = text_context({"ab"}, options, true);
  ChoiceEvent done;
  done.finish = FinishReason::length;
  done.prompt_tokens = 2;
  CompletionAnswer answer(context);
  answer.prompt_scored(0, {{}, {true, -1.0f, {}}});
  answer.push(done);
  const Json json = answer.take_json();
  EXPECT_EQ(json["choices"][0]["text"], "ab");
  EXPECT_EQ(json["choices"][0]["logprobs"]["tokens"], Json::array({"a", "b"}));
  EXPECT_EQ(json["choices"][0]["logprobs"]["top_logprobs"].dump(), R"([null,{"b":-1.0}])");
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
}

TEST(CompletionWire, ControlTokensTakeNoRoomUnlessTheyShow) {
  RequestOptions options;
  options.logprobs = 0;
  const auto offsets = [&](bool special_text) {
    options.special_text = special_text;
    const CompletionContext context = text_context({"abc"}, options);
    CompletionAnswer answer(context);
    answer.push(with_logprob(event("", 1), -1));
    answer.push(with_logprob(event("i", 2, FinishReason::length), -1));
    return answer.take_json()["choices"][0]["logprobs"]["text_offset"].dump();
  };
  EXPECT_EQ(offsets(false), "[0,0]");
  EXPECT_EQ(offsets(true), "[0,10]");
}

TEST(CompletionWire, TokenIdsAndPromptLogprobs) {
  RequestOptions options;
  options.return_token_ids = true;
  options.prompt_logprobs = 0;
  const CompletionContext context = text_context({"ab"}, options);
  CompletionAnswer answer(context);
  answer.prompt_scored(0, {{}, {true, -1.0f, {}}});
  answer.push(event("h", 1, FinishReason::length));
  const Json choice = answer.take_json()["choices"][0];
  EXPECT_EQ(choice["token_ids"], Json::array({104}));
  EXPECT_EQ(choice["prompt_token_ids"], Json::array({97, 98}));
  EXPECT_EQ(choice["prompt_logprobs"].size(), 2u);
  const auto sent = payloads(CompletionStream(context), {event("h", 1), event("i", 2, FinishReason::length)});
  EXPECT_EQ(Json::parse(sent[0])["choices"][0]["prompt_token_ids"], Json::array({97, 98}));
  EXPECT_FALSE(Json::parse(sent[1])["choices"][0].contains("prompt_token_ids"));
}

// Every byte a token: characters of two, three and four bytes, and one that never ends.
TEST(Wire, CharactersSplitAcrossTokensArriveWhole) {
  const std::string answer = "aü€😀z\xF0\x9F";
  text::Detokenizer detokenizer(*api_model().tokenizer);
  const ChatContext context = chat_context();
  ChatStream stream(context);
  ChatAnswer whole(context);
  std::vector<std::string> sent;
  std::uint32_t count = 0;
  for (const TokenId id : bytes(answer)) {
    const bool last = ++count == answer.size();
    std::string text = detokenizer.push(id);
    if (last) text += detokenizer.finish();
    ChoiceEvent one = event("h", count, last ? FinishReason::length : FinishReason::none);
    one.token = id;
    one.text = text;
    stream.push(one, sent);
    whole.push(one);
  }
  std::string joined;
  for (const std::string& payload : sent) {
    EXPECT_FALSE(text::first_invalid_utf8(payload)) << payload;
    if (payload == "[DONE]") continue;
    joined += Json::parse(payload)["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(joined, "aü€😀z\xEF\xBF\xBD");
  EXPECT_EQ(whole.json()["choices"][0]["message"]["content"], joined);
}

TEST(Wire, TextIsEscaped) {
  const ChatContext context = chat_context();
  const auto sent = payloads(ChatStream(context), {event("\"\\\n\r\x01</script>", 1)});
  EXPECT_THAT(sent[1], HasSubstr(R"({"content":"\"\\\n\r\u0001</script>"})"));
  EXPECT_EQ(sent[1].find('\n'), std::string::npos);  // an event ends at a newline
}

TEST(ErrorBody, FormAndHeaders) {
  const ApiError error = invalid_value("temperature", "3", "0 to 2");
  EXPECT_EQ(error.json().dump(),
            R"({"error":{"message":"temperature is 3; valid: 0 to 2","type":"invalid_request_error",)"
            R"("param":"temperature","code":"invalid_value"}})");
  EXPECT_THAT(error.headers(), IsEmpty());
  using Header = std::pair<std::string, std::string>;
  EXPECT_THAT(overloaded("full", 500).headers(),
              ElementsAre(Header("Retry-After", "120"), Header("x-should-retry", "true")));
  EXPECT_THAT(slow_down("wait", 0).headers(),
              ElementsAre(Header("Retry-After", "1"), Header("x-should-retry", "true")));
  EXPECT_EQ(slow_down("wait", 0).status, 429);
  EXPECT_THAT(context_length_exceeded("prompt", {70, 10, 64}).headers(),
              ElementsAre(Header("x-should-retry", "false")));
}

TEST(ErrorBody, ErrorsOfTheLayersBelowHaveTheirStatus) {
  const auto status = [](ErrorCode code) { return from_error({code, "why"}, "prompt").status; };
  EXPECT_EQ(status(ErrorCode::bad_input), 400);
  EXPECT_EQ(status(ErrorCode::unsupported), 400);
  EXPECT_EQ(status(ErrorCode::does_not_fit), 400);
  EXPECT_EQ(from_error({ErrorCode::does_not_fit, "why"}, "prompt").should_retry, false);
  EXPECT_EQ(status(ErrorCode::exhausted), 503);
  EXPECT_EQ(status(ErrorCode::internal), 500);
  EXPECT_EQ(from_error({ErrorCode::internal, "why"}, "prompt").param, "");
}

TEST(ErrorBody, ValuesAreQuotedShort) {
  EXPECT_EQ(quoted(Json("hot")), "\"hot\"");
  EXPECT_EQ(quoted(Json(std::string(1000, 'a'))), "\"" + std::string(48, 'a') + "...\"");
  EXPECT_FALSE(text::first_invalid_utf8(quoted(Json("a" + std::string(30, 'x') + std::string("€€€€€€€€€€€€")))));
  EXPECT_EQ(quoted(Json::array({1, 2, 3, 4, 5})), "a list of 5");
  EXPECT_EQ(quoted(Json::array({1, 2})), "[1,2]");
}

}  // namespace
}  // namespace kvasir::server::api
