#include <fmt/format.h>

#include "server/api/request_parts.hpp"
#include "server/api/template_variables.hpp"

namespace kvasir::server::api {
namespace {

// Text, or parts joined by a newline as vLLM and llama.cpp join them. `path`: "messages[2].content".
ApiResult<std::string> read_content(const Json& content, const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string part = fmt::format("{}[{}]", path, i);
    if (member(content[i], "type") == nullptr) return missing_field(part + ".type", "\"text\"");
    const Json* text = member(content[i], "text");
    if (text == nullptr) return missing_field(part + ".text", "text");
    if (i > 0) out += '\n';
    out += text->get_ref<const std::string&>();
  }
  return out;
}

ApiResult<text::ChatMessage> read_message(const Json& message, const std::string& path) {
  const Json* role = member(message, "role");
  if (role == nullptr) return missing_field(path + ".role", range_words(*find_field("messages[].role", Route::chat)));
  const Json* content = member(message, "content");
  if (content == nullptr) return missing_field(path + ".content", "text or a list of text parts");
  KV_ASSIGN(std::string text, read_content(*content, path + ".content"));
  // Templates know no developer; it is the newer name of the same thing.
  return text::ChatMessage{*role == "developer" ? "system" : role->get<std::string>(), std::move(text)};
}

ApiStatus read_continuation(const Json& body, ChatPrompt& out) {
  out.continue_final_message = flag_of(body, "continue_final_message", false);
  // Absent, it means what the continuation needs.
  out.add_generation_prompt = flag_of(body, "add_generation_prompt", !out.continue_final_message);
  if (!out.continue_final_message) return api_ok();
  if (out.add_generation_prompt) {
    return bad_request("conflicting_parameters", "continue_final_message",
                       "continue_final_message is true and add_generation_prompt is true; valid: one of them");
  }
  if (out.messages.back().role == "assistant") return api_ok();
  return bad_request("conflicting_parameters", "continue_final_message",
                     fmt::format("continue_final_message is true and the last message is of role {}; valid: assistant",
                                 out.messages.back().role));
}

ApiStatus read_template(const Json& body, const ModelFacts& facts, ChatPrompt& out) {
  out.chat_template = text_of(body, "chat_template");
  if (!out.chat_template.empty() && !facts.trust_request_template) {
    return bad_request(
        "unsupported_parameter", "chat_template",
        fmt::format("chat_template is {} bytes of template and this server renders its own alone; valid: leave "
                    "it out, or a server started with --trust-request-chat-template",
                    out.chat_template.size()));
  }
  if (out.chat_template.empty() && facts.chat_template == nullptr) {
    return bad_request(
        "unsupported_value", "messages",
        "messages is given and the model has no chat template; valid: POST /v1/completions with a prompt");
  }
  if (const Json* variables = member(body, "chat_template_kwargs")) out.template_variables = *variables;
  return check_template_variables(out.template_variables, *facts.tokenizer);
}

ApiStatus read_logprobs(const Json& body, RequestOptions& out) {
  const Json* top = member(body, "top_logprobs");
  const std::int64_t alternatives = top == nullptr ? 0 : integer_of(*top);
  if (flag_of(body, "logprobs", false)) {
    out.logprobs = static_cast<std::int32_t>(alternatives);
  } else if (alternatives > 0) {
    return bad_request(
        "conflicting_parameters", "top_logprobs",
        fmt::format("top_logprobs is {} and logprobs is false; valid: top_logprobs only with logprobs: true",
                    alternatives));
  }
  return api_ok();
}

}  // namespace

ApiResult<ChatPrompt> read_chat_prompt(const Json& body, const ModelFacts& facts) {
  const Json* messages = member(body, "messages");
  if (messages == nullptr) return missing_field("messages", valid_words(*find_field("messages", Route::chat)));
  ChatPrompt out;
  out.messages.reserve(messages->size());
  for (std::size_t i = 0; i < messages->size(); ++i) {
    KV_ASSIGN(text::ChatMessage message, read_message((*messages)[i], fmt::format("messages[{}]", i)));
    out.messages.push_back(std::move(message));
  }
  KV_TRY(read_continuation(body, out));
  KV_TRY(read_template(body, facts, out));
  return out;
}

ApiResult<ChatRequest> parse_chat(const Json& body, const ModelFacts& facts) {
  ChatRequest out;
  KV_ASSIGN(out.warnings, check_body(body, Route::chat, facts));
  KV_ASSIGN(out.options, read_options(body, facts));
  KV_TRY(read_logprobs(body, out.options));
  KV_ASSIGN(out.prompt, read_chat_prompt(body, facts));
  if (out.options.max_tokens == 0u && out.options.prompt_logprobs < 0) {
    return invalid_value("max_tokens", "0", "at least 1 (0 only with prompt_logprobs)");
  }
  KV_TRY(read_search(body, Route::chat, out.options));
  return out;
}

}  // namespace kvasir::server::api
