// Drives the API's request parser with hostile bodies, and the builders of answers with what it accepts.
//
// Input: one byte that chooses the route (low two bits) and strict mode (bit 2), then the body. What must hold:
//   - a refusal is a 4xx with a message, and its error object is valid UTF-8;
//   - what is accepted keeps to the limits that readers rely on, and its prompt fits the context;
//   - every payload of a stream is JSON, and its texts joined are the whole answer.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/check.hpp"
#include "server/api/chat_answer.hpp"
#include "server/api/completion_answer.hpp"
#include "server/api/json_body.hpp"
#include "server/api/plain_answers.hpp"
#include "text/detokenizer.hpp"
#include "text/utf8.hpp"

namespace {

using namespace kvasir;               // NOLINT(google-build-using-namespace)
using namespace kvasir::server::api;  // NOLINT(google-build-using-namespace)

constexpr std::uint32_t kContext = 2048;
constexpr std::size_t kMaxChoicesRun = 64;  // answers that are played through

struct Server {
  Server()
      : tokenizer(
            text::Tokenizer::from_gguf(
                artifact::GgufFile::open(std::string(KVASIR_SOURCE_DIR) + "/tests/data/text/vocab-smollm.gguf").value())
                .value()),
        chat_template(
            text::ChatTemplate::from_string(
                "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}",
                "<|endoftext|>", "<|im_end|>")
                .value()) {
    facts.names = {"tiny"};
    facts.max_model_len = kContext;
    facts.tokenizer = &tokenizer;
    facts.chat_template = &chat_template;
    facts.longest_piece_bytes = longest_piece(tokenizer);
  }
  text::Tokenizer tokenizer;
  text::ChatTemplate chat_template;
  ModelFacts facts;
};

void check_refusal(const ApiError& error) {
  KV_CHECK(error.status >= 400 && error.status < 500, "a body is refused with a 4xx");
  KV_CHECK(!error.message.empty() && !error.code.empty() && !error.param.empty(), "a refusal says what and why");
  KV_CHECK(!text::first_invalid_utf8(report::to_json_line(error.json())), "an error object is UTF-8");
}

void check_options(const RequestOptions& options) {
  KV_CHECK(options.n >= 1 && options.n <= kMaxChoices, "n keeps to its range");
  KV_CHECK(options.temperature >= 0 && options.top_p > 0 && options.top_p <= 1 && options.min_p >= 0,
           "no NaN, no negatives");
  KV_CHECK(options.stop.size() <= engine::kMaxStopStrings, "stop keeps to its range");
  KV_CHECK(!options.max_tokens || options.min_tokens <= *options.max_tokens, "min_tokens within max_tokens");
}

// A choice that says its prompt again.
template <class Push>
void play(const Server& server, const PreparedPrompt& prompt, std::uint32_t index, const Push& push) {
  text::Detokenizer detokenizer(server.tokenizer);
  ChoiceEvent event;
  event.index = index;
  event.prompt_tokens = static_cast<std::uint32_t>(prompt.ids.size());
  event.has_logprob = true;
  event.logprob = -1;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    const bool last = i + 1 == prompt.ids.size();
    std::string text = detokenizer.push(prompt.ids[i]);
    if (last) text += detokenizer.finish();
    event.token = prompt.ids[i];
    event.text = text;
    event.completion_tokens = static_cast<std::uint32_t>(i + 1);
    event.finish = last ? engine::FinishReason::length : engine::FinishReason::none;
    push(event);
  }
}

std::string joined(const std::vector<std::string>& payloads, const char* of_delta) {
  std::string out;
  for (const std::string& payload : payloads) {
    if (payload == kStreamEnd) continue;
    const Json json = Json::parse(payload);
    for (const Json& choice : json["choices"]) {
      if (choice["index"] == 0)
        out += of_delta == nullptr ? choice["text"].get<std::string>() : choice["delta"].value(of_delta, "");
    }
  }
  KV_CHECK(payloads.back() == kStreamEnd, "a stream ends with [DONE]");
  return out;
}

void chat(const Server& server, const Json& body, const ModelFacts& facts) {
  const auto request = parse_chat(body, facts);
  if (!request) return check_refusal(request.error());
  check_options(request->options);
  const auto prompt = prepare_chat(*request, facts);
  if (!prompt) return check_refusal(prompt.error());
  KV_CHECK(!prompt->ids.empty() && prompt->ids.size() <= kContext, "a prompt fits the context");
  const ChatContext context = {{"id", 0, request->options.model, ""}, request->options, *prompt, facts.tokenizer};
  ChatAnswer whole(context);
  ChatStream stream(context);
  std::vector<std::string> payloads;
  for (std::uint32_t i = 0; i < context.options.n; ++i) {
    play(server, *prompt, i, [&](const ChoiceEvent& event) {
      whole.push(event);
      stream.push(event, payloads);
    });
    if (context.options.n > kMaxChoicesRun) return;
  }
  whole.prompt_scored(std::vector<PositionLogprobs>(prompt->ids.size()));
  KV_CHECK(joined(payloads, "content") == whole.json()["choices"][0]["message"]["content"],
           "streamed and whole are one text");
}

void completion(const Server& server, const Json& body, const ModelFacts& facts) {
  const auto request = parse_completion(body, facts);
  if (!request) return check_refusal(request.error());
  check_options(request->options);
  const auto prompts = prepare_completion(*request, facts);
  if (!prompts) return check_refusal(prompts.error());
  const CompletionContext context = {
      {"id", 0, request->options.model, ""}, request->options, request->echo, *prompts, facts.tokenizer};
  if (context.choices() > kMaxChoicesRun) return;
  CompletionAnswer whole(context);
  CompletionStream stream(context);
  std::vector<std::string> payloads;
  for (std::size_t i = 0; i < context.choices(); ++i) {
    const std::size_t prompt = i / context.options.n;
    KV_CHECK(!(*prompts)[prompt].ids.empty() && (*prompts)[prompt].ids.size() <= kContext, "a prompt fits the context");
    whole.prompt_scored(prompt, std::vector<PositionLogprobs>((*prompts)[prompt].ids.size()));
    stream.prompt_scored(prompt, std::vector<PositionLogprobs>((*prompts)[prompt].ids.size()));
    play(server, (*prompts)[prompt], static_cast<std::uint32_t>(i), [&](const ChoiceEvent& event) {
      whole.push(event);
      stream.push(event, payloads);
    });
  }
  KV_CHECK(joined(payloads, nullptr) == whole.take_json()["choices"][0]["text"], "streamed and whole are one text");
}

void tokenize(const Json& body, const ModelFacts& facts) {
  const auto request = parse_tokenize(body, facts);
  if (!request) return check_refusal(request.error());
  const auto answer = tokenize_json(*request, facts);
  if (!answer) check_refusal(answer.error());
}

void detokenize(const Json& body, const ModelFacts& facts) {
  const auto request = parse_detokenize(body, facts);
  if (!request) return check_refusal(request.error());
  const auto answer = detokenize_json(*request, facts);
  KV_CHECK(answer.ok(), "ids of the vocabulary have a text");
  KV_CHECK(!text::first_invalid_utf8((*answer)["prompt"].get<std::string>()), "a text is UTF-8");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Server kServer;
  if (size == 0) return 0;
  const auto body = parse_body({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!body) {
    check_refusal(body.error());
    return 0;
  }
  ModelFacts facts = kServer.facts;
  facts.strict = (data[0] & 4) != 0;
  facts.trust_request_template = (data[0] & 8) != 0;
  switch (data[0] & 3) {
    case 0:
      chat(kServer, *body, facts);
      break;
    case 1:
      completion(kServer, *body, facts);
      break;
    case 2:
      tokenize(*body, facts);
      break;
    case 3:
      detokenize(*body, facts);
      break;
  }
  return 0;
}
