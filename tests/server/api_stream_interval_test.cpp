// Several tokens in a chunk: what a client puts together is the same for every interval, and no token waits for one
// that will not come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/prng.hpp"
#include "server/api/chat_answer.hpp"
#include "server/api/completion_answer.hpp"
#include "tests/server/api_fixture.hpp"

namespace kvasir::server::api {
namespace {

using engine::FinishReason;
using engine::TokenLogprob;
using testing::ElementsAre;

constexpr std::uint32_t kIntervals[] = {1, 2, 7, kMaxStreamInterval};

// An event that owns what it shows.
struct Told {
  ChoiceEvent event;
  std::string text;
  std::vector<TokenLogprob> top;

  ChoiceEvent view() const {
    ChoiceEvent out = event;
    out.text = text;
    out.top_logprobs = top;
    return out;
  }
};

// The events of n answers as an engine gives them: texts that wait, stops, ends that bring a token and ends that do
// not, the choices in any order.
std::vector<Told> events_of(std::uint32_t n, std::uint64_t seed) {
  PhiloxSequence random(31, seed);
  std::vector<std::uint32_t> left(n), counts(n);
  for (std::uint32_t& tokens : left) tokens = 1 + static_cast<std::uint32_t>(random.below(40));
  std::vector<Told> out;
  for (std::uint32_t open = n; open > 0;) {
    const auto index = static_cast<std::uint32_t>(random.below(n));
    if (left[index] == 0) continue;
    Told one;
    one.event.index = index;
    one.event.prompt_tokens = 3;
    one.event.completion_tokens = ++counts[index];
    one.event.token = static_cast<TokenId>('a' + random.below(26));
    one.event.has_logprob = true;
    one.event.logprob = -static_cast<float>(random.below(64)) / 8;
    one.top = {{one.event.token, one.event.logprob}, {'!', -9.5f}};
    if (random.below(4) > 0) one.text = std::string(1 + random.below(2), static_cast<char>(one.event.token));
    if (--left[index] == 0) {
      --open;
      const bool apart = random.below(2) == 0;
      if (apart) {
        out.push_back(one);
        one = {
            .event = {.index = index, .prompt_tokens = 3, .completion_tokens = counts[index]}, .text = {}, .top = {}};
      }
      one.event.finish = random.below(2) == 0 ? FinishReason::stop : FinishReason::length;
      if (one.event.finish == FinishReason::stop) one.event.stop_text = "END";
    }
    out.push_back(one);
  }
  return out;
}

RequestOptions options_of(std::uint32_t interval, std::uint64_t seed) {
  RequestOptions options;
  options.n = 1 + static_cast<std::uint32_t>(seed % 3);
  options.stream = options.include_usage = true;
  options.stream_interval = interval;
  options.logprobs = seed % 2 == 0 ? 1 : -1;
  options.return_token_ids = seed % 4 < 2;
  options.continuous_usage = seed % 5 == 0;
  return options;
}

ChatContext chat_context(RequestOptions options) {
  return {
      {"chatcmpl-1", 1700000000, "tiny", "fp"}, std::move(options), {.ids = bytes("abc")}, api_model().tokenizer.get()};
}

CompletionContext text_context(RequestOptions options) {
  CompletionContext context = {
      {"cmpl-1", 1700000000, "tiny", "fp"}, std::move(options), true, {}, api_model().tokenizer.get()};
  context.prompts.push_back({.ids = bytes("abc"), .text = "abc"});
  return context;
}

void append(Json& to, const Json& list) { to.insert(to.end(), list.begin(), list.end()); }

// What a client has in the end: of each choice its text, log probabilities, ids and reasons, and the usage.
Json assembled(const std::vector<std::string>& payloads, std::uint32_t n) {
  Json choices = Json::array(), usage;
  for (std::uint32_t i = 0; i < n; ++i) choices.push_back({{"text", ""}, {"ids", Json::array()}, {"finish", nullptr}});
  EXPECT_EQ(payloads.back(), "[DONE]");
  for (std::size_t i = 0; i + 1 < payloads.size(); ++i) {
    const Json payload = Json::parse(payloads[i]);
    if (payload["choices"].empty()) usage = payload["usage"];
    for (const Json& choice : payload["choices"]) {
      Json& out = choices[choice["index"].get<std::size_t>()];
      EXPECT_TRUE(out["finish"].is_null()) << "nothing after the last";
      const Json& text = choice.contains("delta") ? choice["delta"].value("content", Json("")) : choice["text"];
      out["text"] = out["text"].get<std::string>() + text.get<std::string>();
      append(out["ids"], choice.value("token_ids", Json::array()));
      out["finish"] = choice["finish_reason"];
      out["stop"] = choice.value("stop_reason", Json());
      if (!choice["logprobs"].is_object()) continue;
      for (const auto& [name, list] : choice["logprobs"].items()) {
        if (!list.is_array()) continue;
        if (!out.contains(name)) out[name] = Json::array();
        append(out[name], list);
      }
    }
  }
  return {{"choices", choices}, {"usage", usage}};
}

template <class Stream, class Context>
std::vector<std::string> sent(const Context& context, const std::vector<Told>& events) {
  Stream stream(context);
  std::vector<std::string> out;
  for (const Told& one : events) stream.push(one.view(), out);
  return out;
}

template <class Stream, class MakeContext>
void expect_one_answer_for_every_interval(const MakeContext& make_context) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Json first;
    std::size_t most = 0;
    for (const std::uint32_t interval : kIntervals) {
      const auto context = make_context(options_of(interval, seed));
      const std::vector<std::string> payloads = sent<Stream>(context, events_of(context.options.n, seed));
      const Json answer = assembled(payloads, context.options.n);
      if (interval == 1) {
        first = answer;
        most = payloads.size();
      }
      EXPECT_EQ(answer.dump(), first.dump()) << "seed " << seed << ", interval " << interval;
      EXPECT_LE(payloads.size(), most) << "seed " << seed << ", interval " << interval;
    }
  }
}

TEST(StreamInterval, ChatAnswersAreTheSameForEveryInterval) {
  expect_one_answer_for_every_interval<ChatStream>(chat_context);
}

TEST(StreamInterval, CompletionsAreTheSameForEveryInterval) {
  expect_one_answer_for_every_interval<CompletionStream>([](RequestOptions options) {
    CompletionContext context = text_context(std::move(options));
    context.echo = context.options.logprobs < 0;  // with both, the prompt's log probabilities would be needed
    return context;
  });
}

Told token(char letter, std::uint32_t count, std::uint64_t at_ms = 0) {
  Told out;
  out.text = std::string(1, letter);
  out.event.token = letter;
  out.event.prompt_tokens = 3;
  out.event.completion_tokens = count;
  out.event.at_ns = at_ms * 1'000'000;
  return out;
}

Told end(FinishReason finish, std::uint32_t count) {
  Told out;
  out.event.finish = finish;
  out.event.prompt_tokens = 3;
  out.event.completion_tokens = count;
  return out;
}

// "abc" for a chunk of content, "abc." for one that also ends its choice, "+n" for the usage it tells, "!" for an
// error.
std::vector<std::string> shape(const std::vector<std::string>& payloads) {
  std::vector<std::string> out;
  for (const std::string& payload : payloads) {
    if (payload == "[DONE]") continue;
    const Json json = Json::parse(payload);
    if (json.contains("error")) {
      out.push_back("!");
      continue;
    }
    const Json& choice = json["choices"][0];
    if (choice.contains("delta") && choice["delta"].contains("role")) continue;
    std::string one =
        choice.contains("delta") ? choice["delta"].value("content", "") : choice["text"].get<std::string>();
    if (!choice["finish_reason"].is_null()) one += ".";
    if (json.value("usage", Json()).is_object()) one += "+" + json["usage"]["completion_tokens"].dump();
    out.push_back(one);
  }
  return out;
}

RequestOptions every(std::uint32_t interval, bool usage = false) {
  RequestOptions options;
  options.stream_interval = interval;
  options.continuous_usage = usage;
  return options;
}

TEST(StreamInterval, TheFirstTokenGoesAtOnceAndTheLastChunkWithTheEnd) {
  const std::vector<Told> events = {token('a', 1),
                                    token('b', 2),
                                    token('c', 3),
                                    token('d', 4),
                                    token('e', 5),
                                    token('f', 6),
                                    end(FinishReason::length, 6)};
  const ChatContext chat = chat_context(every(3, true));
  EXPECT_THAT(shape(sent<ChatStream>(chat, events)), ElementsAre("a+1", "bcd+4", "ef.+6"));
  CompletionContext text = text_context(every(3, true));
  text.echo = false;
  EXPECT_THAT(shape(sent<CompletionStream>(text, events)), ElementsAre("a+1", "bcd+4", "ef.+6"));
}

TEST(StreamInterval, ATextThatWaitedGoesWithTheTokenThatFreesIt) {
  std::vector<Told> events = {token('a', 1), token('b', 2), token('c', 3), token('d', 4), token('e', 5)};
  events[1].text = events[2].text = "";
  events[3].text = "bcd";
  const ChatContext context = chat_context(every(2));
  EXPECT_THAT(shape(sent<ChatStream>(context, events)), ElementsAre("a", "bcd")) << "two were due already";
  events[0].text = "";
  EXPECT_THAT(shape(sent<ChatStream>(context, events)), ElementsAre("bcd")) << "the first text is not held";
}

TEST(StreamInterval, ASilenceEndsTheWaiting) {
  const std::vector<Told> events = {token('a', 1, 10), token('b', 2, 500), token('c', 3, 1010), token('d', 4, 1500),
                                    token('e', 5, 2100)};
  const ChatContext context = chat_context(every(50));
  EXPECT_THAT(shape(sent<ChatStream>(context, events)), ElementsAre("a", "bc", "de"));
}

TEST(StreamInterval, AFailureComesAfterWhatIsHeld) {
  std::vector<Told> events = {token('a', 1), token('b', 2), token('x', 1), token('y', 2)};
  events[2].event.index = events[3].event.index = 1;
  for (const bool told_by_event : {true, false}) {
    RequestOptions options = every(7, true);
    options.n = 2;
    const ChatContext chat = chat_context(options);
    CompletionContext text = text_context(options);
    text.echo = false;
    ChatStream chats(chat);
    CompletionStream texts(text);
    std::vector<std::string> chat_sent, text_sent;
    for (const Told& one : events) {
      chats.push(one.view(), chat_sent);
      texts.push(one.view(), text_sent);
    }
    const Told failed = end(FinishReason::error, 2);
    if (told_by_event) {
      chats.push(failed.view(), chat_sent);
      texts.push(failed.view(), text_sent);
    } else {
      chats.fail(overloaded("the server ends", 1), chat_sent);
      texts.fail(overloaded("the server ends", 1), text_sent);
    }
    EXPECT_THAT(shape(chat_sent), ElementsAre("a+1", "x+2", "b+3", "y+4", "!"));
    EXPECT_THAT(shape(text_sent), ElementsAre("a+1", "x+2", "b+3", "y+4", "!"));
    EXPECT_TRUE(chats.closed() && texts.closed());
  }
}

TEST(StreamInterval, ARequestMayRaiseTheServersSettingAndNotLowerIt) {
  ModelFacts facts = api_model().facts;
  facts.stream_interval = 4;
  const auto interval = [&facts](const std::string& more) {
    return value_of(parse_with(parse_completion, R"({"prompt": "x", "stream": true)" + more + "}", facts))
        .options.stream_interval;
  };
  EXPECT_EQ(interval(""), 4u);
  EXPECT_EQ(interval(R"(, "stream_interval": 2)"), 4u);
  EXPECT_EQ(interval(R"(, "stream_interval": 9)"), 9u);
  EXPECT_EQ(interval(R"(, "stream_interval": 100000)"), kMaxStreamInterval);
  const auto none = parse_with(parse_completion, R"({"prompt": "x", "stream_interval": 0})", facts);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().param, "stream_interval");
}

}  // namespace
}  // namespace kvasir::server::api
