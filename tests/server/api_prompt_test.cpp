#include "server/api/prompt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/plain_answers.hpp"
#include "tests/server/api_fixture.hpp"

namespace kvasir::server::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ApiResult<PreparedPrompt> prepare(std::string_view body, const ModelFacts& facts = api_model().facts) {
  const auto request = parse_with(parse_chat, body, facts);
  if (!request) return request.error();
  return prepare_chat(*request, facts);
}

ApiResult<std::vector<PreparedPrompt>> prepare_text(std::string_view body,
                                                    const ModelFacts& facts = api_model().facts) {
  const auto request = parse_with(parse_completion, body, facts);
  if (!request) return request.error();
  return prepare_completion(*request, facts);
}

std::string chat_ids(std::string_view body, const ModelFacts& facts = api_model().facts) {
  return shown(value_of(prepare(body, facts)).ids);
}

std::string user(std::string_view content, std::string_view members = "") {
  return Json{{"messages", Json::array({Json{{"role", "user"}, {"content", content}}})}}.dump().insert(1, members);
}

TEST(ChatPrompt, TheTemplateWritesTheControlTokens) {
  EXPECT_EQ(chat_ids(user("hi")), "{256}user\nhi{257}\n{256}assistant\n");
  EXPECT_EQ(chat_ids(user("hi", R"("add_generation_prompt":false,)")), "{256}user\nhi{257}\n");
}

TEST(ChatPrompt, AContinuedMessageIsTheBeginningOfTheAnswer) {
  EXPECT_EQ(chat_ids(R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":" b<|im_end|>"}],
                        "continue_final_message":true,"add_generation_prompt":false})"),
            "{256}user\na{257}\n{256}assistant\n b<|im_end|>");
}

TEST(ChatPrompt, VariablesReachTheTemplate) {
  const ApiModel model(
      "{% if think is defined and not think %}off {{ depth }} {{ mode }} {{ nothing }}{% endif %}\n"
      "{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(
      chat_ids(user("x", R"("chat_template_kwargs":{"think":false,"depth":2,"mode":"very high","nothing":null},)"),
               model.facts),
      "off 2 very high Nonex");
  EXPECT_EQ(chat_ids(user("x"), model.facts), "x");
  EXPECT_EQ(chat_ids(user("x", R"("chat_template_kwargs":{"think":true},)"), model.facts), "x");
}

TEST(ChatPrompt, ATrustedTemplateOfTheRequestIsRendered) {
  ModelFacts facts = api_model().facts;
  facts.trust_request_template = true;
  EXPECT_EQ(chat_ids(user("x", R"("chat_template":"{{ bos_token }}{{ messages[0].content }}",)"), facts), "{258}x");
  for (const char* source :
       {"{% for %}", "{{ raise_exception('no') }}", "{% for i in range(99999999) %}x{% endfor %}"}) {
    const auto refused = prepare(user("x", R"("chat_template":)" + Json(source).dump() + ","), facts);
    ASSERT_FALSE(refused.ok()) << source;
    EXPECT_EQ(refused.error().status, 400);
    EXPECT_EQ(refused.error().param, "chat_template");
  }
}

TEST(ChatPrompt, ATemplatesOwnRefusalIsTheAnswer) {
  const ApiModel model("{{ raise_exception('roles must alternate') }}");
  const auto refused = prepare(user("x"), model.facts);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "messages");
  EXPECT_THAT(refused.error().message, HasSubstr("roles must alternate"));
}

TEST(CompletionPrompt, TextsIdsAndEchoes) {
  const auto prompts = value_of(prepare_text(R"({"prompt":["hi","<|im_end|>x"],"echo":true})"));
  ASSERT_EQ(prompts.size(), 2u);
  EXPECT_EQ(shown(prompts[0].ids), "hi");
  EXPECT_EQ(prompts[0].text, "hi");
  EXPECT_EQ(shown(prompts[1].ids), "{257}x");
  EXPECT_EQ(prompts[1].text, "<|im_end|>x");
  EXPECT_EQ(shown(value_of(prepare_text(R"({"prompt":"<|im_end|>x","parse_special":false})"))[0].ids), "<|im_end|>x");
  const auto ids = value_of(prepare_text(R"({"prompt":[[104,105],[257,120]],"echo":true})"));
  EXPECT_THAT(ids[1].ids, ElementsAre(257, 120));
  EXPECT_EQ(ids[0].text, "hi");
  EXPECT_EQ(ids[1].text, "<|im_end|>x");
  EXPECT_EQ(value_of(prepare_text(R"({"prompt":"hi"})"))[0].text, "");  // nobody asked
}

TEST(CompletionPrompt, AnAddedBosIsNotEchoed) {
  const ApiModel model(kChatMl, true);
  const auto added = value_of(prepare_text(R"({"prompt":"hi","echo":true})", model.facts))[0];
  EXPECT_EQ(shown(added.ids), "{258}hi");
  EXPECT_EQ(added.text, "hi");
  EXPECT_EQ(added.hidden, 1u);
  const auto written = value_of(prepare_text(R"({"prompt":"<bos>hi","echo":true})", model.facts))[0];
  EXPECT_EQ(shown(written.ids), "{258}hi");
  EXPECT_EQ(written.hidden, 0u);
  EXPECT_EQ(shown(value_of(prepare_text(R"({"prompt":"hi","add_special_tokens":false})", model.facts))[0].ids), "hi");
  EXPECT_EQ(shown(value_of(prepare_text(R"({"prompt":[104]})", model.facts))[0].ids),
            "h");  // ids are taken as they are
}

TEST(CompletionPrompt, IsCutOnRequestAloneAndSaysSo) {
  ModelFacts facts = api_model().facts;
  facts.max_model_len = 8;
  const auto cut =
      value_of(prepare_text(R"({"prompt":"abcdefghij","truncate_prompt_tokens":3,"echo":true})", facts))[0];
  EXPECT_EQ(shown(cut.ids), "hij");
  EXPECT_EQ(cut.text, "hij");
  EXPECT_EQ(cut.cut_from, 10u);
  const auto fitted =
      value_of(prepare_text(R"({"prompt":"abcdefghij","truncate_prompt_tokens":-1,"max_tokens":2})", facts))[0];
  EXPECT_EQ(shown(fitted.ids), "efghij");
  EXPECT_EQ(value_of(prepare_text(R"({"prompt":"ab","truncate_prompt_tokens":5})", facts))[0].cut_from, 0u);
  EXPECT_EQ(prepare_text(R"({"prompt":"abcdefghij","truncate_prompt_tokens":9})", facts).error().code,
            "context_length_exceeded");
  EXPECT_EQ(prepare_text(R"({"prompt":"ab","truncate_prompt_tokens":-1,"max_tokens":8})", facts).error().code,
            "context_length_exceeded");
}

TEST(Prompt, AHopelessTextIsRefusedWithoutTokenizingIt) {
  const std::string text(std::size_t{1} << 20, 'a');
  for (const auto& refused : {prepare_text(Json{{"prompt", text}}.dump()).error(), prepare(user(text)).error()}) {
    EXPECT_EQ(refused.code, "context_length_exceeded");
    EXPECT_THAT(refused.message, HasSubstr("at least"));
    EXPECT_EQ(refused.should_retry, false);
  }
}

// Bytes without a token yield none, so they cannot make a text too long.
TEST(Prompt, TheQuickBoundCountsOnlyBytesThatHaveTokens) {
  test::GgufWriter writer;
  writer.value("tokenizer.ggml.model", std::string_view("gpt2")).value("tokenizer.ggml.pre", std::string_view("gpt-2"));
  writer.array<std::string_view>("tokenizer.ggml.tokens", {"a", "b"});
  writer.array<std::int32_t>("tokenizer.ggml.token_type", {1, 1});
  writer.array<std::string_view>("tokenizer.ggml.merges", {});
  const auto tokenizer = text::tokenizer_of(writer).value();
  ModelFacts facts = api_model().facts;
  facts.tokenizer = &tokenizer;
  facts.longest_piece_bytes = 1;
  facts.max_model_len = 64;
  const auto served = prepare_text(Json{{"prompt", "ab" + std::string(1000, 'z')}}.dump(), facts);
  ASSERT_TRUE(served.ok()) << served.error().message;
  EXPECT_THAT((*served)[0].ids, ElementsAre(0, 1));
  EXPECT_EQ(prepare_text(Json{{"prompt", std::string(1000, 'a')}}.dump(), facts).error().code,
            "context_length_exceeded");
}

TEST(PlainAnswers, Models) {
  const Json models = models_json(api_model().facts);
  EXPECT_EQ(
      models.dump(),
      R"({"object":"list","data":[{"id":"tiny","object":"model","created":1700000000,"owned_by":"kvasir",)"
      R"("root":"models/tiny.gguf","parent":null,"max_model_len":1024},{"id":"alias","object":"model",)"
      R"("created":1700000000,"owned_by":"kvasir","root":"models/tiny.gguf","parent":null,"max_model_len":1024}]})");
  EXPECT_EQ(value_of(model_json("alias", api_model().facts))["id"], "alias");
  EXPECT_EQ(model_json("other", api_model().facts).error().status, 404);
  EXPECT_THAT(model_json("other", api_model().facts).error().message, HasSubstr("tiny, alias"));
  EXPECT_EQ(model_json("", api_model().facts).error().status, 404);
}

TEST(PlainAnswers, TokenizeAndBack) {
  const ApiModel model(kChatMl, true);
  const auto tokenize = [&](std::string_view body) {
    return value_of(tokenize_json(value_of(parse_with(parse_tokenize, body, model.facts)), model.facts)).dump();
  };
  EXPECT_EQ(tokenize(R"({"prompt":"a\u00fc"})"),
            R"({"count":4,"max_model_len":1024,"tokens":[258,97,195,188],"token_strs":null})");
  EXPECT_EQ(tokenize(R"({"prompt":"\u00fc","add_special_tokens":false,"return_token_strs":true})"),
            R"({"count":2,"max_model_len":1024,"tokens":[195,188],"token_strs":["bytes:\\xc3","bytes:\\xbc"]})");
  EXPECT_EQ(tokenize(R"({"prompt":"","add_special_tokens":false})"),
            R"({"count":0,"max_model_len":1024,"tokens":[],"token_strs":null})");
  EXPECT_EQ(tokenize(R"({"messages":[{"role":"user","content":"a"}],"add_generation_prompt":false})"),
            R"({"count":10,"max_model_len":1024,"tokens":[258,256,117,115,101,114,10,97,257,10],"token_strs":null})");
  const auto detokenize = [&](std::string_view body) {
    return value_of(detokenize_json(value_of(parse_with(parse_detokenize, body, model.facts)), model.facts)).dump();
  };
  EXPECT_EQ(detokenize(R"({"tokens":[258,97,195,188]})"), R"({"prompt":"<bos>aü"})");
  EXPECT_EQ(detokenize(R"({"tokens":[]})"), R"({"prompt":""})");
  EXPECT_EQ(detokenize(R"({"tokens":[97,195]})"), "{\"prompt\":\"a\xEF\xBF\xBD\"}");
}

TEST(PlainAnswers, TokenizerInfoHasWhatLmEvalReads) {
  const Json info = tokenizer_info_json(api_model().facts);
  EXPECT_EQ(info["eos_token"], "<|im_end|>");
  EXPECT_EQ(info["bos_token"], "<bos>");
  EXPECT_EQ(info["pad_token"], "<|im_end|>");
  EXPECT_EQ(info["chat_template"], kChatMl);
}

TEST(PlainAnswers, RenderedPrompts) {
  const auto chat = value_of(parse_with(parse_chat, user("a")));
  EXPECT_EQ(render_chat_json(chat, value_of(prepare_chat(chat, api_model().facts)), "r1")["token_ids"].size(), 20u);
  const auto text = value_of(parse_with(parse_completion, R"({"prompt":["a","b"]})"));
  EXPECT_EQ(render_completion_json(text, value_of(prepare_completion(text, api_model().facts)), "r2").dump(),
            R"([{"request_id":"r2-0","token_ids":[97],"model":"tiny","stream":false,"priority":0},)"
            R"({"request_id":"r2-1","token_ids":[98],"model":"tiny","stream":false,"priority":0}])");
}

}  // namespace
}  // namespace kvasir::server::api
