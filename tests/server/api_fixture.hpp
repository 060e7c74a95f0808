// A model to serve in the tests of the API: every byte is a token, so tests can write ids and texts by hand, and
// characters beyond ASCII come in several tokens.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/json_body.hpp"
#include "server/api/model_facts.hpp"
#include "server/api/request.hpp"
#include "tests/text/vocabularies.hpp"

namespace kvasir::server::api {

// Ids: a byte is itself; then:
inline constexpr TokenId kImStart = 256, kImEnd = 257, kBos = 258, kVocabulary = 259;

inline constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

struct ApiModel {
  // adds_bos: the model's file asks for a BOS in front of texts.
  explicit ApiModel(std::string_view source = kChatMl, bool adds_bos = false) {
    test::GgufWriter writer = text::byte_vocabulary({{"<|im_start|>", 3}, {"<|im_end|>", 3}, {"<bos>", 3}});
    writer.value("tokenizer.ggml.bos_token_id", std::uint32_t{258})
        .value("tokenizer.ggml.eos_token_id", std::uint32_t{257});
    writer.value("tokenizer.ggml.add_bos_token", adds_bos);
    tokenizer = std::make_unique<text::Tokenizer>(text::tokenizer_of(writer).value());
    chat_template =
        std::make_unique<text::ChatTemplate>(text::ChatTemplate::from_string(source, "<bos>", "<|im_end|>").value());
    facts.names = {"tiny", "alias"};
    facts.root = "models/tiny.gguf";
    facts.created = 1700000000;
    facts.fingerprint = "kvasir-0-f16";
    facts.max_model_len = 1024;
    facts.tokenizer = tokenizer.get();
    facts.longest_piece_bytes = longest_piece(*tokenizer);
    facts.chat_template = chat_template.get();
  }

  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::ChatTemplate> chat_template;
  ModelFacts facts;
};

inline const ApiModel& api_model() {
  static const ApiModel kModel;
  return kModel;
}

inline TokenIds bytes(std::string_view text) { return text::bytes_as_ids(text); }

// Ids as text, control tokens as {id}: what the model is told.
inline std::string shown(const TokenIds& ids) {
  std::string out;
  for (const TokenId id : ids) out += id < 256 ? std::string(1, static_cast<char>(id)) : "{" + std::to_string(id) + "}";
  return out;
}

// From the bytes of a body to the parsed request, as a server does it.
template <class Request>
ApiResult<Request> parse_with(ApiResult<Request> (*parse)(const Json&, const ModelFacts&), std::string_view body,
                              const ModelFacts& facts = api_model().facts) {
  auto json = parse_body(body);
  if (!json) return json.error();
  return parse(*json, facts);
}

template <class T>
T value_of(ApiResult<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result).value();
}

}  // namespace kvasir::server::api
