#include "text/chat_template.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "ffi/template.hpp"
#include "text/content_marks.hpp"
#include "text/utf8.hpp"

namespace kvasir::text {

namespace {

constexpr std::string_view kKey = "tokenizer.chat_template";

Error bad(std::string message) { return Error{ErrorCode::bad_input, std::move(message)}; }

bool is_role(std::string_view role) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !role.empty() && role.size() <= kMaxRoleBytes && std::all_of(role.begin(), role.end(), plain);
}

Status check_messages(std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    // A role is part of the template's own text, where control tokens are recognised: it must not be able to hold one.
    if (!is_role(messages[i].role)) {
      return bad(fmt::format("messages[{}].role is \"{}\"; valid: 1 to {} letters, digits, '_', '-' and '.'", i,
                             first_invalid_utf8(messages[i].role) ? "(not UTF-8)" : messages[i].role.substr(0, 80),
                             kMaxRoleBytes));
    }
    if (const auto at = first_invalid_utf8(messages[i].content)) {
      return bad(fmt::format("messages[{}].content is not UTF-8 at byte {}", i, *at));
    }
  }
  return ok_status();
}

// The text of the token that `key` names, empty if there is none.
Result<std::string_view> special_text(const artifact::GgufFile& file, std::string_view key) {
  if (file.find(key) == nullptr) return std::string_view();
  KV_ASSIGN(const std::uint64_t id, file.get_uint(key));
  KV_ASSIGN(const auto tokens, file.get_strings("tokenizer.ggml.tokens"));
  if (id >= tokens.size())
    return bad(fmt::format("{}: {} is {}; valid: below {}", file.name(), key, id, tokens.size()));
  return tokens[id];
}

std::vector<TokenId> control_ids_of(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::vector<TokenId> out;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(out), [&](TokenId id) { return tokenizer.is_control(id); });
  return out;
}

}  // namespace

struct ChatTemplate::State {
  State(std::string text, std::string bos, std::string eos, ffi::Template t)
      : source(std::move(text)), bos_token(std::move(bos)), eos_token(std::move(eos)), parsed(std::move(t)) {}

  std::string source, bos_token, eos_token;
  ffi::Template parsed;

  Result<std::string> render(std::span<const ChatMessage> messages, std::span<const std::string> contents,
                             bool add_generation_prompt) const;
  std::optional<std::string> marker_for(std::span<const ChatMessage> messages) const;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const State> state) : state_(std::move(state)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::from_gguf(const artifact::GgufFile& file) {
  if (file.find(kKey) == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} has no {}: the model knows no chat; give it plain text", file.name(), kKey)};
  }
  KV_ASSIGN(const std::string_view source, file.get_string(kKey));
  KV_ASSIGN(const std::string_view bos, special_text(file, "tokenizer.ggml.bos_token_id"));
  KV_ASSIGN(const std::string_view eos, special_text(file, "tokenizer.ggml.eos_token_id"));
  auto made = from_string(source, bos, eos);
  if (!made) return Error{made.error().code, fmt::format("{}: {}", file.name(), made.error().message)};
  return made;
}

Result<ChatTemplate> ChatTemplate::from_string(std::string_view source, std::string_view bos_token,
                                               std::string_view eos_token) {
  if (source.size() > kMaxTemplateBytes) {
    return bad(fmt::format("{}: {} bytes; valid: at most {}", kKey, source.size(), kMaxTemplateBytes));
  }
  auto parsed = ffi::Template::create(source);
  if (!parsed) return Error{parsed.error().code, fmt::format("{}: {}", kKey, parsed.error().message)};
  return ChatTemplate(std::make_unique<const State>(std::string(source), std::string(bos_token), std::string(eos_token),
                                                    std::move(parsed).value()));
}

// Renders with `contents` in place of the messages' own, which may be empty to mean the latter.
Result<std::string> ChatTemplate::State::render(std::span<const ChatMessage> messages,
                                                std::span<const std::string> contents,
                                                bool add_generation_prompt) const {
  std::vector<ffi::TemplateMessage> views;
  views.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    views.push_back({messages[i].role, contents.empty() ? messages[i].content : contents[i]});
  }
  auto text = parsed.render({views, bos_token, eos_token, add_generation_prompt}, kMaxRenderedBytes);
  if (!text) return Error{text.error().code, fmt::format("{}: {}", kKey, text.error().message)};
  return text;
}

std::optional<std::string> ChatTemplate::State::marker_for(std::span<const ChatMessage> messages) const {
  std::vector<std::string_view> texts = {source, bos_token, eos_token};
  for (const ChatMessage& message : messages) texts.push_back(message.content);
  return unused_marker(texts);
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  KV_TRY(check_messages(messages));
  return state_->render(messages, {}, add_generation_prompt);
}

Result<std::vector<TokenId>> ChatTemplate::encode_chat(const Tokenizer& tokenizer,
                                                       std::span<const ChatMessage> messages,
                                                       bool add_generation_prompt) const {
  KV_ASSIGN(const std::string plain, render(messages, add_generation_prompt));
  const auto marker = state_->marker_for(messages);
  if (!marker) return bad("the messages use every private-use character of plane 16; valid: all but one");
  const std::vector<TokenId> structural = tokenizer.structural_tokens_in(state_->source);
  const auto marked = [&](const auto& mark) -> Result<Unmarked> {
    std::vector<std::string> contents;
    contents.reserve(messages.size());
    for (const ChatMessage& message : messages) contents.push_back(mark(message.content));
    KV_ASSIGN(const std::string text, state_->render(messages, contents, add_generation_prompt));
    return unmark(text, *marker);
  };
  KV_ASSIGN(const Unmarked full, marked([&](const std::string& content) { return mark_all(content, *marker); }));
  KV_ASSIGN(std::vector<TokenId> full_ids, tokenizer.encode_guarded(full.text, full.literal, structural, true));
  if (full.text == plain) return full_ids;

  // The template looked into the content. Mark the dangerous places only, and accept the outcome if it has the control
  // tokens of the rendering in which no content could be mistaken for anything.
  std::vector<std::string_view> guarded;
  for (const TokenId id : tokenizer.control_ids()) guarded.push_back(tokenizer.piece(id));
  for (const TokenId id : structural) guarded.push_back(tokenizer.piece(id));
  KV_ASSIGN(const Unmarked partial,
            marked([&](const std::string& content) { return mark_hazards(content, guarded, *marker); }));
  KV_ASSIGN(std::vector<TokenId> ids, tokenizer.encode_guarded(partial.text, partial.literal, structural, true));
  if (control_ids_of(tokenizer, ids) != control_ids_of(tokenizer, full_ids)) {
    return bad("the chat template makes control tokens out of a message's text; the conversation is refused");
  }
  return ids;
}

const std::string& ChatTemplate::source() const { return state_->source; }

}  // namespace kvasir::text
