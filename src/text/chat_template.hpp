// A model's chat template: messages to prompt. Jinja, rendered as Python's `transformers` does (trim_blocks,
// lstrip_blocks, loop controls, raise_exception, strftime_now, Python's tojson and string methods).
//
// encode_chat() keeps content and template apart: the control tokens that the template writes become control ids; the
// same text inside a message's content stays text. How: the template is rendered once plain and once with a private
// marker character (one that occurs in neither template nor messages) after every visible character of content. Where
// the two differ in nothing but markers, as they do unless the template inspects content, the markers say exactly which
// bytes came from content, and no control token is recognised on those. Where a template does inspect content, only
// the dangerous places are marked (texts of control tokens, and ends of content that could complete one), and the
// control tokens of the result must be those of the fully marked rendering; otherwise the request is refused, not
// guessed at.
//
// Exactly one BOS: whether template, tokenizer, both or neither write one, a model that wants BOS gets one.
//
// Thread rule: immutable after creation; every const function may be called from several threads at once.
// Errors: bad_input for a template that does not parse, raises, recurses or loops beyond the limits, and for roles
// and texts that are malformed; the message has the template's own words.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::text {

inline constexpr std::size_t kMaxTemplateBytes = 1u << 20;
inline constexpr std::size_t kMaxRenderedBytes = 64u << 20;
inline constexpr std::size_t kMaxRoleBytes = 64;

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool" ...: 1 to kMaxRoleBytes letters, digits, '_', '-', '.'
  std::string content;  // UTF-8
};

class ChatTemplate {
 public:
  // The template in tokenizer.chat_template, with the file's BOS and EOS texts.
  // Errors: unsupported if the file has none (the message says so); bad_input if it does not parse.
  static Result<ChatTemplate> from_gguf(const artifact::GgufFile& file);
  // bos_token, eos_token: what the template sees under these names.
  static Result<ChatTemplate> from_string(std::string_view source, std::string_view bos_token,
                                          std::string_view eos_token);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt as text, for people to read. To feed the model use encode_chat(): this text no longer tells template
  // from content.
  Result<std::string> render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;

  // The prompt as ids. `tokenizer` is that of the same model file.
  Result<std::vector<TokenId>> encode_chat(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                           bool add_generation_prompt) const;

  const std::string& source() const;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace kvasir::text
