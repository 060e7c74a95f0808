#include "server/api/plain_answers.hpp"

#include <fmt/format.h>

#include "server/api/logprobs.hpp"
#include "text/utf8.hpp"

namespace kvasir::server::api {
namespace {

Json model_entry(const std::string& name, const ModelFacts& facts) {
  return {{"id", name},
          {"object", "model"},
          {"created", facts.created},
          {"owned_by", "kvasir"},
          {"root", facts.root},
          {"parent", nullptr},
          {"max_model_len", facts.max_model_len}};
}

Json special_text(std::optional<TokenId> id, const ModelFacts& facts) {
  return id ? Json(token_name(*facts.tokenizer, *id)) : Json(nullptr);
}

Json rendered(const PreparedPrompt& prompt, const RequestOptions& options, std::string id) {
  return {{"request_id", std::move(id)},
          {"token_ids", prompt.ids},
          {"model", options.model},
          {"stream", options.stream},
          {"priority", options.priority}};
}

}  // namespace

Json models_json(const ModelFacts& facts) {
  Json data = Json::array();
  for (const std::string& name : facts.names) data.push_back(model_entry(name, facts));
  return {{"object", "list"}, {"data", std::move(data)}};
}

ApiResult<Json> model_json(std::string_view id, const ModelFacts& facts) {
  if (id.empty()) return model_not_found(id, facts.names);
  KV_ASSIGN(const std::string name, check_model(id, facts));
  return model_entry(name, facts);
}

ApiResult<Json> tokenize_json(const TokenizeRequest& request, const ModelFacts& facts) {
  TokenIds ids;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    KV_ASSIGN(ids, encode_text(*text, {request.add_special, request.parse_special}, facts));
  } else {
    KV_ASSIGN(ids, encode_chat(std::get<ChatPrompt>(request.prompt), facts));
  }
  Json strings;
  if (request.return_token_strs) {
    strings = Json::array();
    for (const TokenId id : ids) strings.push_back(token_name(*facts.tokenizer, id));
  }
  return Json{{"count", ids.size()},
              {"max_model_len", facts.max_model_len},
              {"tokens", std::move(ids)},
              {"token_strs", std::move(strings)}};
}

ApiResult<Json> detokenize_json(const DetokenizeRequest& request, const ModelFacts& facts) {
  auto text = facts.tokenizer->decode(request.tokens, false);
  if (!text) return from_error(text.error(), "tokens");
  std::string whole;
  for (std::size_t at = 0; at < text->size();) {
    const text::Utf8Step step = text::utf8_step(*text, at);
    whole += step.kind == text::Utf8Kind::character ? std::string_view(*text).substr(at, step.length)
                                                    : text::kReplacementCharacter;
    at += step.length;
  }
  return Json{{"prompt", std::move(whole)}};
}

Json tokenizer_info_json(const ModelFacts& facts) {
  const text::Tokenizer& tokenizer = *facts.tokenizer;
  // Generation tools pad with the end-of-text token where a model has no padding of its own.
  return {{"tokenizer_class", "kvasir"},
          {"bos_token", special_text(tokenizer.bos(), facts)},
          {"eos_token", special_text(tokenizer.eos(), facts)},
          {"pad_token", special_text(tokenizer.eos(), facts)},
          {"add_bos_token", tokenizer.adds_bos()},
          {"vocab_size", tokenizer.vocab_size()},
          {"model_max_length", facts.max_model_len},
          {"chat_template", facts.chat_template == nullptr ? Json(nullptr) : Json(facts.chat_template->source())}};
}

Json render_chat_json(const ChatRequest& request, const PreparedPrompt& prompt, std::string_view id) {
  return rendered(prompt, request.options, std::string(id));
}

Json render_completion_json(const CompletionRequest& request, std::span<const PreparedPrompt> prompts,
                            std::string_view id) {
  Json out = Json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i)
    out.push_back(rendered(prompts[i], request.options, fmt::format("{}-{}", id, i)));
  return out;
}

}  // namespace kvasir::server::api
