// Text to token ids and back, as the model file defines it.
//
// Two kinds of vocabulary are offered: byte-level BPE (tokenizer.ggml.model "gpt2") and SentencePiece-style BPE by
// score with byte fallback ("llama": Llama 2 and Gemma). Ids equal llama.cpp's for the same file, text and options,
// with these exceptions, each on purpose:
//   - where special tokens are added, the ids never start with two BOS tokens: a text that begins with the model's BOS
//     gets no second one;
//   - a control token never arises from text unless `parse_special` asks for it (llama.cpp's SentencePiece merge can
//     build "<s>" out of its letters);
//   - a vocabulary that names two tokens alike, or lacks what a merge makes, is refused;
//   - decode() takes off the space that a vocabulary puts in front of a text whether or not BOS comes first.
//
// Thread rule: immutable after creation; every const function may be called from several threads at once.
// Invariants: ids are 0 .. vocab_size()-1. Byte-level BPE: decode(encode(t)) == t for every valid UTF-8 text t, less
// the bytes for which it has no token (missing_bytes(); SmolLM2 lacks six control characters and the lead bytes F1,
// F2), as in llama.cpp. SentencePiece: the same, but U+2581 comes back as a space, and so does the space put behind
// specials. Errors: bad_input for invalid UTF-8 (with the byte offset) and for malformed vocabularies (with key and
// index); unsupported for a tokenizer model or pre-tokenizer not offered (the message lists those that are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

namespace kvasir::text {

inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;  // of one encode()

// What a vocabulary entry is for, as the file says (tokenizer.ggml.token_type). Tokens that end a turn and are known by
// name ("<|im_end|>", "</s>" ...) count as control even where the file calls them otherwise, as in llama.cpp.
enum class TokenKind : std::uint8_t { normal, unknown, control, user_defined, unused, byte };

std::string_view to_string(TokenKind kind);

struct EncodeOptions {
  // Adds what the model's file asks for: BOS in front (never a second one), EOS behind.
  bool add_special = true;
  // Recognises the text of control tokens. Off: "<|im_end|>" in a text is ten characters. User-defined tokens are
  // recognised either way: they are ordinary vocabulary that must not be split (Gemma's runs of newlines).
  bool parse_special = false;
};

// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

class Tokenizer {
 public:
  static Result<Tokenizer> from_gguf(const artifact::GgufFile& file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Empty text yields no ids but the BOS and EOS that `add_special` adds. Errors: bad_input for invalid UTF-8.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Like encode() with parse_special, but no control token is recognised that has even one byte inside a `literal`
  // range, nor any of the user-defined tokens `structural`. What a chat template's output needs
  // (text/chat_template.hpp). `literal`: ascending, not overlapping, within the text. add_bos: puts BOS in front if the
  // model's file asks for it.
  Result<std::vector<TokenId>> encode_guarded(std::string_view text, std::span<const TextRange> literal,
                                              std::span<const TokenId> structural, bool add_bos) const;

  // The bytes that the ids stand for; they need not be whole characters. skip_special leaves out control and unknown
  // tokens. The space that a vocabulary puts in front of every text (Llama 2) is taken off again.
  // Errors: bad_input for an id outside the vocabulary.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special = true) const;

  // What one token stands for: its bytes, control tokens as their text. REQUIRES: contains(id).
  std::string_view piece(TokenId id) const;
  TokenKind kind(TokenId id) const;
  bool is_control(TokenId id) const { return kind(id) == TokenKind::control; }
  // Whether generation ends with this token: EOS, end of turn, end of message, by the file's ids and by name.
  bool is_eog(TokenId id) const;
  std::span<const TokenId> eog_ids() const;  // ascending

  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < vocab_size(); }
  std::size_t vocab_size() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;  // whether encode() with add_special puts BOS in front
  // Bytes, ascending, that occur in valid UTF-8 and for which the vocabulary has no token.
  std::span<const std::uint8_t> missing_bytes() const;
  // The token of exactly this text as the file writes it ("<|im_start|>", "Ġthe").
  std::optional<TokenId> find(std::string_view token_text) const;
  // User-defined tokens that look like markup ("<tool_call>", "[INST]") and occur in `text`.
  std::vector<TokenId> structural_tokens_in(std::string_view text) const;
  // All control and unknown tokens, ascending.
  std::span<const TokenId> control_ids() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace kvasir::text
