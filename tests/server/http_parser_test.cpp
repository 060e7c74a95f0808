// The request parser alone: what it makes of bytes does not depend on how they arrive.
#include "server/http/request_parser.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "server/http/request_id.hpp"
#include "server/http/target.hpp"

namespace kvasir::server {
namespace {

constexpr RequestParser::Limits kLimits = {.header_bytes = 4096, .header_count = 20, .body_bytes = 1000};

// What a reader of the stream sees: each request's words, and the status that ended it, if one did.
std::string transcript(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  std::string seen, pending;
  RequestParser parser(kLimits);
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : bytes.size();
    pending += bytes.substr(begin, end - begin);
    begin = end;
    while (true) {
      std::size_t consumed = 0;
      const RequestParser::Event event = parser.feed(pending, consumed);
      EXPECT_LE(consumed, pending.size());
      pending.erase(0, consumed);
      if (event == RequestParser::Event::need_more) break;
      if (event == RequestParser::Event::failed) return seen + "!" + std::to_string(parser.failure().status);
      if (event == RequestParser::Event::head) continue;
      const HttpRequest& request = parser.request();
      seen += request.method + " " + request.path + " [" + request.body + "] ";
      for (const HeaderField& field : request.headers) seen += field.name + "=" + field.value + ";";
      seen += "\n";
      parser = RequestParser(kLimits);
    }
  }
  return seen;
}

std::string served_part(const std::string& transcript) { return transcript.substr(0, transcript.rfind('!')); }

TEST(HttpRequestParser, ReadsARequestCutAnywhere) {
  const std::string bytes =
      "POST /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nX-B: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e\r\nde\r\n0\r\nT: 1\r\n\r\n"
      "\r\nGET / HTTP/1.1\r\nHost: y\r\n\r\n";
  const std::string expected = "POST /a b [abcde] host=x;x-b=2;transfer-encoding=chunked;\nGET / [] host=y;\n";
  EXPECT_EQ(transcript(bytes, {}), expected);
  std::vector<std::size_t> everywhere;
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    EXPECT_EQ(transcript(bytes, {i}), expected) << "cut at " << i;
    everywhere.push_back(i);
  }
  EXPECT_EQ(transcript(bytes, everywhere), expected);
}

TEST(HttpRequestParser, GivesTheHeadBeforeItConsumesTheBody) {
  RequestParser parser(kLimits);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  std::size_t consumed = 0;
  EXPECT_FALSE(parser.started());
  ASSERT_EQ(parser.feed(head + "abc", consumed), RequestParser::Event::head);
  EXPECT_EQ(consumed, head.size());
  EXPECT_TRUE(parser.has_body() && parser.expects_continue() && parser.keep_alive() && parser.http11());
  ASSERT_EQ(parser.feed("abc", consumed), RequestParser::Event::complete);
  EXPECT_EQ(parser.request().body, "abc");
}

TEST(HttpRequestParser, ALimitHoldsHoweverTheBytesArrive) {
  std::string drip = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 15; ++i) drip += "H: " + std::string(400, 'a') + "\r\n";
  std::vector<std::size_t> lines;
  for (std::size_t i = drip.find('\n'); i != std::string::npos; i = drip.find('\n', i + 1)) lines.push_back(i + 1);
  EXPECT_EQ(transcript(drip, {}), "!431");
  EXPECT_EQ(transcript(drip, lines), "!431") << "a line a read must not start the count anew";
}

TEST(HttpRequestParser, GarbageMeansTheSameWholeOrInPieces) {
  PhiloxSequence random(7);
  constexpr std::string_view kPieces[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\n", "Host: x\r\n", "\r\n", "POST /a HTTP/1.1\r\nHost: x\r\n",
                                          "Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n",
                                          "0\r\n\r\n", "abcd", "Expect: 100-continue\r\n", "X: \"", "%", "GET /% HTTP/1.1\r\n"};
  int served = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes;
    for (std::uint32_t n = random.below(10); n > 0; --n) {
      bytes += kPieces[random.below(static_cast<std::uint32_t>(std::size(kPieces)))];
      if (random.below(8) == 0) bytes += static_cast<char>(random.below(256));
    }
    std::vector<std::size_t> cuts;
    for (std::size_t at = random.below(5); at < bytes.size(); at += random.below(9) + 1) cuts.push_back(at);
    const std::string whole = transcript(bytes, {});
    // A refusal may come later in pieces, when a line or a head is complete; what is served may not differ.
    ASSERT_EQ(served_part(transcript(bytes, cuts)), served_part(whole)) << testing::PrintToString(bytes);
    served += whole.find('\n') != std::string::npos ? 1 : 0;
    refused += whole.find('!') != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(served, 100);   // the inputs reach both ends
  EXPECT_GT(refused, 100);
}

TEST(HttpTarget, DecodesWhatItShould) {
  const Target target = parse_target("/a/%E2%82%AC?b=%2B+c&d&&e=f=g#part").value();
  EXPECT_EQ(target.path, "/a/\xE2\x82\xAC");
  const std::vector<std::pair<std::string, std::string>> query = {{"b", "+ c"}, {"d", ""}, {"e", "f=g"}};
  EXPECT_EQ(target.query, query);
  EXPECT_EQ(parse_target("http://proxy:1/x?y=1").value().path, "/x");
  EXPECT_EQ(parse_target("http://proxy").value().path, "/");
  EXPECT_EQ(parse_target("/a+b").value().path, "/a+b") << "a plus is a space in queries alone";
}

TEST(HttpTarget, RefusesWhatNobodyMeans) {
  std::string many = "/?";
  for (int i = 0; i < 65; ++i) many += "a&";
  for (const std::string& target : {std::string(""), std::string("a"), std::string("*"), std::string("/%"), std::string("/%1"),
                                    std::string("/%1g"), std::string("/%00"), std::string("/?a=%"), std::string("ftp://x/"), many}) {
    EXPECT_FALSE(parse_target(target).ok()) << target;
  }
}

TEST(HttpRequestId, IsSafeToLogAndFresh) {
  EXPECT_TRUE(valid_request_id("chatcmpl-1.2:3/4"));
  EXPECT_TRUE(valid_request_id(std::string(128, 'a')));
  for (const std::string bad : {"", " ", "a b", "a\n", "a\"", "\xC3\xA9"}) EXPECT_FALSE(valid_request_id(bad));
  EXPECT_FALSE(valid_request_id(std::string(129, 'a')));
  EXPECT_TRUE(valid_request_id(make_request_id()));
  EXPECT_NE(make_request_id(), make_request_id());
}

}  // namespace
}  // namespace kvasir::server
