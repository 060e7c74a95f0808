#include "server/api/prompt.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "server/api/template_variables.hpp"

namespace kvasir::server::api {
namespace {

constexpr std::uint32_t kWhatFits = std::numeric_limits<std::uint32_t>::max();

std::uint64_t output_of(const RequestOptions& options) { return options.max_tokens.value_or(1); }

// A text that cannot fit however it is tokenized is refused in the time it takes to look at it once.
ApiStatus check_size(std::string_view text, std::string_view param, const RequestOptions& options,
                     const ModelFacts& facts) {
  if (facts.longest_piece_bytes == 0 || options.keep_prompt_tokens ||
      text.size() / facts.longest_piece_bytes <= facts.max_model_len) {
    return api_ok();
  }
  std::array<bool, 256> missing{};  // bytes without a token yield none
  for (const std::uint8_t byte : facts.tokenizer->missing_bytes()) missing[byte] = true;
  const auto bytes = static_cast<std::uint64_t>(
      std::count_if(text.begin(), text.end(), [&](char c) { return !missing[static_cast<unsigned char>(c)]; }));
  const ContextNeed need = {bytes / facts.longest_piece_bytes, output_of(options), facts.max_model_len, true};
  return need.prompt + need.output <= need.limit ? api_ok() : ApiStatus(context_length_exceeded(param, need));
}

// Cuts if that was asked for, then holds the prompt against the context.
ApiStatus fit(PreparedPrompt& prompt, std::string_view param, const RequestOptions& options, const ModelFacts& facts) {
  if (prompt.ids.empty()) return invalid_value(param, "0 tokens", "at least 1 token");
  if (options.keep_prompt_tokens) {
    std::uint64_t keep = *options.keep_prompt_tokens;
    if (keep == kWhatFits)
      keep = facts.max_model_len - std::min<std::uint64_t>(output_of(options), facts.max_model_len);
    if (keep > 0 && keep < prompt.ids.size()) {
      prompt.cut_from = static_cast<std::uint32_t>(prompt.ids.size());
      prompt.ids.erase(prompt.ids.begin(), prompt.ids.end() - static_cast<std::ptrdiff_t>(keep));
    }
  }
  const ContextNeed need = {prompt.ids.size(), output_of(options), facts.max_model_len, false};
  return need.prompt + need.output <= need.limit ? api_ok() : ApiStatus(context_length_exceeded(param, need));
}

// The template of the request, or the model's with the request's variables; none if the model's own serves as it is.
ApiResult<std::optional<text::ChatTemplate>> own_template(const ChatPrompt& prompt, const ModelFacts& facts) {
  if (prompt.chat_template.empty() && prompt.template_variables.empty()) return std::optional<text::ChatTemplate>();
  const auto text_of_special = [&](std::optional<TokenId> id) {
    return id ? facts.tokenizer->piece(*id) : std::string_view();
  };
  const std::string& source = prompt.chat_template.empty() ? facts.chat_template->source() : prompt.chat_template;
  auto made =
      text::ChatTemplate::from_string(template_prologue(prompt.template_variables) + source,
                                      text_of_special(facts.tokenizer->bos()), text_of_special(facts.tokenizer->eos()));
  if (!made) return from_error(made.error(), prompt.chat_template.empty() ? "chat_template_kwargs" : "chat_template");
  return std::optional(std::move(made).value());
}

// What an echo shows of ids, and how many of the first it does not.
ApiStatus add_echo(PreparedPrompt& prompt, const std::string* text, const ModelFacts& facts) {
  if (text == nullptr || prompt.cut_from > 0) {
    auto decoded = facts.tokenizer->decode(prompt.ids, false);
    if (!decoded) return from_error(decoded.error(), "prompt");
    prompt.text = std::move(decoded).value();
    return api_ok();
  }
  prompt.text = *text;
  const auto bos = facts.tokenizer->bos();
  prompt.hidden = bos && prompt.ids.front() == *bos && !text->starts_with(facts.tokenizer->piece(*bos)) ? 1 : 0;
  return api_ok();
}

ApiResult<PreparedPrompt> prepare_one(const std::variant<std::string, TokenIds>& source,
                                      const CompletionRequest& request, const ModelFacts& facts) {
  PreparedPrompt out;
  const auto* text = std::get_if<std::string>(&source);
  if (text != nullptr) {
    KV_TRY(check_size(*text, "prompt", request.options, facts));
    KV_ASSIGN(out.ids, encode_text(*text, {request.add_special, request.parse_special}, facts));
  } else {
    out.ids = std::get<TokenIds>(source);
  }
  KV_TRY(fit(out, "prompt", request.options, facts));
  if (request.echo) KV_TRY(add_echo(out, text, facts));
  return out;
}

}  // namespace

std::size_t longest_piece(const text::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest = std::max(longest, tokenizer.piece(static_cast<TokenId>(id)).size());
  }
  return longest;
}

ApiResult<TokenIds> encode_text(std::string_view text, text::EncodeOptions options, const ModelFacts& facts) {
  auto ids = facts.tokenizer->encode(text, options);
  if (!ids) return from_error(ids.error(), "prompt");
  return std::move(ids).value();
}

ApiResult<TokenIds> encode_chat(const ChatPrompt& prompt, const ModelFacts& facts) {
  KV_ASSIGN(const auto own, own_template(prompt, facts));
  const text::ChatTemplate& chosen = own ? *own : *facts.chat_template;
  std::span<const text::ChatMessage> messages = prompt.messages;
  if (prompt.continue_final_message) messages = messages.first(messages.size() - 1);
  auto ids =
      chosen.encode_chat(*facts.tokenizer, messages, prompt.add_generation_prompt || prompt.continue_final_message);
  if (!ids) return from_error(ids.error(), prompt.chat_template.empty() ? "messages" : "chat_template");
  if (prompt.continue_final_message) {
    KV_ASSIGN(const TokenIds begun, encode_text(prompt.messages.back().content, {.add_special = false}, facts));
    ids->insert(ids->end(), begun.begin(), begun.end());
  }
  return std::move(ids).value();
}

ApiResult<PreparedPrompt> prepare_chat(const ChatRequest& request, const ModelFacts& facts) {
  for (const text::ChatMessage& message : request.prompt.messages) {
    KV_TRY(check_size(message.content, "messages", request.options, facts));
  }
  PreparedPrompt out;
  KV_ASSIGN(out.ids, encode_chat(request.prompt, facts));
  KV_TRY(fit(out, "messages", request.options, facts));
  return out;
}

ApiResult<std::vector<PreparedPrompt>> prepare_completion(const CompletionRequest& request, const ModelFacts& facts) {
  std::vector<PreparedPrompt> out;
  out.reserve(request.prompts.size());
  for (const auto& source : request.prompts) {
    KV_ASSIGN(PreparedPrompt prompt, prepare_one(source, request, facts));
    out.push_back(std::move(prompt));
  }
  return out;
}

}  // namespace kvasir::server::api
