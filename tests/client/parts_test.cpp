// Addresses, event streams and answers: no sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/address.hpp"
#include "client/answer_stream.hpp"
#include "client/http.hpp"
#include "client/sse.hpp"

namespace kvasir::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Address, ReadsHostsPortsBasesAndSockets) {
  const Address plain = *parse_address("http://127.0.0.1:8000");
  EXPECT_EQ(plain.host, "127.0.0.1");
  EXPECT_EQ(plain.port, 8000);
  EXPECT_EQ(plain.base, "");
  EXPECT_EQ(plain.text(), "127.0.0.1:8000");
  const Address based = *parse_address("http://llm.example/team/v1/");
  EXPECT_EQ(based.host, "llm.example");
  EXPECT_EQ(based.port, 80);
  EXPECT_EQ(based.base, "/team/v1");
  const Address v6 = *parse_address("http://[::1]:9");
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.authority(), "[::1]:9");
  EXPECT_EQ(parse_address("unix:/run/kvasir.sock")->unix_path, "/run/kvasir.sock");
  EXPECT_EQ(parse_address("unix:///run/kvasir.sock")->unix_path, "/run/kvasir.sock");
  EXPECT_EQ(parse_address("unix:k.sock")->text(), "unix:k.sock");
}

TEST(Address, SaysWhatIsWrongAndWhatIsValid) {
  for (const char* text :
       {"", "127.0.0.1:8000", "ftp://x", "http://", "http://:80", "http://h:0", "http://h:70000", "http://h:8x",
        "http://[::1", "http://[::1]x", "http://h/a?b", "http://u@h", "http://a b", "unix:"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, ErrorCode::usage) << text;
    EXPECT_THAT(address.error().message, HasSubstr("valid: http://HOST:PORT")) << text;
    EXPECT_THAT(address.error().message, HasSubstr("'" + std::string(text) + "'")) << text;
  }
  EXPECT_EQ(parse_address("https://h").error().code, ErrorCode::unsupported);
  EXPECT_THAT(parse_address("unix:" + std::string(108, 'a')).error().message, HasSubstr("108 bytes, at most 107"));
}

TEST(ResponseHead, NamesHaveNoCase) {
  const ResponseHead head{200, {{"Retry-After", "7"}, {"retry-after", "8"}}};
  ASSERT_NE(head.find("RETRY-AFTER"), nullptr);
  EXPECT_EQ(*head.find("RETRY-AFTER"), "7");
  EXPECT_EQ(head.find("Retry"), nullptr);
}

// All events of a stream that arrives in pieces of the given size.
std::vector<std::string> events_of(const std::string& stream, std::size_t piece) {
  std::vector<std::string> events;
  SseReader reader([&](const SseEvent& event) { events.push_back(event.type + "|" + event.data); });
  for (std::size_t at = 0; at < stream.size(); at += piece)
    EXPECT_TRUE(reader.feed(std::string_view(stream).substr(at, piece)).ok());
  EXPECT_TRUE(reader.finish().ok());
  return events;
}

const std::string kStream =
    "\xEF\xBB\xBF: hello\n\ndata: one\n\n: ping\r\ndata:two\r\ndata: lines\r\n\r\nevent: note\rdata\rdata: \xC3\xA9\r\r"
    "id: 7\nretry: 10\nunknown: x\ndata:  kept space\n\nevent: without data\n\ndata: last, no blank line";

TEST(SseReader, GivesTheSameEventsHoweverTheBytesAreCut) {
  const auto whole = events_of(kStream, kStream.size());
  EXPECT_THAT(whole, ElementsAre("|one", "|two\nlines", "note|\n\xC3\xA9", "| kept space", "|last, no blank line"));
  for (std::size_t piece = 1; piece < kStream.size(); ++piece)
    EXPECT_EQ(events_of(kStream, piece), whole) << "pieces of " << piece;
}

TEST(SseReader, GivesTheSameEventsHoweverTheBytesAreCutInTwo) {
  const auto whole = events_of(kStream, kStream.size());
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    std::vector<std::string> events;
    SseReader reader([&](const SseEvent& event) { events.push_back(event.type + "|" + event.data); });
    EXPECT_TRUE(reader.feed(std::string_view(kStream).substr(0, cut)).ok() &&
                reader.feed(std::string_view(kStream).substr(cut)).ok());
    EXPECT_TRUE(reader.finish().ok());
    EXPECT_EQ(events, whole) << "cut at " << cut;
  }
}

TEST(SseReader, AnEventWithoutEndIsRefused) {
  SseReader reader([](const SseEvent&) {}, 100);
  EXPECT_TRUE(reader.feed("data: " + std::string(80, 'x')).ok());
  EXPECT_EQ(reader.feed(std::string(80, 'x')).error().message, "an event of the stream has more than 100 bytes");
}

StreamedAnswer answer_of(Api api, const std::vector<std::string>& chunks) {
  AnswerStream stream(api);
  std::uint64_t ns = 0;
  for (const std::string& chunk : chunks) stream.feed("data: " + chunk + "\n\n", ns += 10);
  stream.finish();
  return stream.take();
}

TEST(AnswerStream, ReadsCompletions) {
  const StreamedAnswer answer = answer_of(
      Api::completions,
      {R"({"choices":[{"index":0,"text":"He","finish_reason":null}]})",
       R"({"choices":[{"index":0,"text":"","finish_reason":null}],"usage":{"prompt_tokens":5,"completion_tokens":2}})",
       R"({"choices":[{"index":0,"text":"y","finish_reason":"length"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}})",
       "[DONE]"});
  EXPECT_EQ(answer.text, "Hey");
  EXPECT_THAT(answer.token_ns, ElementsAre(10, 20, 30));
  EXPECT_EQ(answer.finish_reason, "length");
  EXPECT_EQ(answer.prompt_tokens, 5u);
  EXPECT_EQ(answer.completion_tokens, 3u);
  EXPECT_EQ(answer.cached_tokens, 4u);
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.error, "");
}

// llama-server's order: a role before the prompt is read, and the reason for the end in a chunk of its own.
TEST(AnswerStream, NeitherTheRoleNorTheReasonIsAToken) {
  const StreamedAnswer answer = answer_of(
      Api::chat, {R"({"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":null}]})",
                  R"({"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]})",
                  R"({"choices":[{"delta":{"reasoning_content":"hm"},"finish_reason":null}]})",
                  R"({"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":null}]})",
                  R"({"choices":[{"delta":{"content":""},"finish_reason":null}]})",
                  R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", R"({"choices":[],"usage":null})", "[DONE]"});
  EXPECT_THAT(answer.token_ns, ElementsAre(20, 30, 40, 50));
  EXPECT_EQ(answer.text, "Hi");
  EXPECT_EQ(answer.finish_reason, "stop");
  EXPECT_EQ(answer.completion_tokens, std::nullopt);
}

TEST(AnswerStream, ARoleWithTheFirstWordIsAToken) {
  const StreamedAnswer answer =
      answer_of(Api::chat, {R"({"choices":[{"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]})"});
  EXPECT_THAT(answer.token_ns, ElementsAre(10));
}

TEST(AnswerStream, ErrorsInsideTheStreamAreKept) {
  EXPECT_EQ(answer_of(Api::chat, {R"({"error":{"message":"out of blocks","code":500}})", R"({"error":"later"})"}).error,
            "out of blocks");
  EXPECT_EQ(answer_of(Api::chat, {"{\"choices\":[{"}).error,
            "an event of the stream is no JSON object: '{\"choices\":[{'");
  EXPECT_EQ(answer_of(Api::chat, {R"({"choices":"x","usage":7})", R"({"choices":[3]})"}).error,
            "");  // odd, but nothing is claimed
}

}  // namespace
}  // namespace kvasir::client
