#include "server/api/request_parts.hpp"

namespace kvasir::server::api {

ApiResult<TokenizeRequest> parse_tokenize(const Json& body, const ModelFacts& facts) {
  TokenizeRequest out;
  KV_ASSIGN(out.warnings, check_body(body, Route::tokenize, facts));
  const Json* prompt = member(body, "prompt");
  const bool chat = member(body, "messages") != nullptr;
  if (chat && prompt != nullptr) {
    return bad_request("conflicting_parameters", "prompt", "prompt and messages are both given; valid: one of them");
  }
  if (!chat && prompt == nullptr) return missing_field("prompt", "text, or messages in its place");
  if (chat) {
    KV_ASSIGN(out.prompt, read_chat_prompt(body, facts));
  } else {
    out.prompt = prompt->get<std::string>();
  }
  out.add_special = flag_of(body, "add_special_tokens", true);
  out.parse_special = flag_of(body, "parse_special", true);
  out.return_token_strs = flag_of(body, "return_token_strs", false);
  return out;
}

ApiResult<DetokenizeRequest> parse_detokenize(const Json& body, const ModelFacts& facts) {
  DetokenizeRequest out;
  KV_ASSIGN(out.warnings, check_body(body, Route::detokenize, facts));
  const Json* tokens = member(body, "tokens");
  if (tokens == nullptr) return missing_field("tokens", "a list of token ids");
  out.tokens = read_tokens(*tokens);
  return out;
}

}  // namespace kvasir::server::api
