// The tokens of a model file: texts, kinds, the bytes they stand for, and the special ones by role.
//
// Thread rule: immutable after creation; any thread.
// Invariants: token texts are distinct and not empty (an empty one in the file is named "[EMPTY_<id>]").
// Errors: bad_input names key, index and what would be valid; unsupported names the tokenizer model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::text {

// How texts are spelled: bytes as printable characters (GPT-2), or characters with U+2581 for a space and "<0x0A>"
// tokens for single bytes (SentencePiece).
enum class Spelling : std::uint8_t { byte_level, sentence_piece };

// Texts of many tokens in one allocation.
class TextTable {
 public:
  TextTable() : ends_{0} {}
  void append(std::string_view text);
  std::string_view operator[](TokenId id) const {
    const auto i = static_cast<std::size_t>(id);
    return {bytes_.data() + ends_[i], ends_[i + 1] - ends_[i]};
  }
  std::size_t size() const { return ends_.size() - 1; }

 private:
  std::vector<char> bytes_;  // not a string: its bytes stay where they are when the table is moved
  std::vector<std::size_t> ends_;
};

class Vocabulary {
 public:
  static Result<Vocabulary> from_gguf(const artifact::GgufFile& file);

  Spelling spelling() const { return spelling_; }
  std::size_t size() const { return texts_.size(); }
  std::string_view text(TokenId id) const { return texts_[id]; }    // as the file writes it
  std::string_view piece(TokenId id) const { return pieces_[id]; }  // the bytes it stands for
  TokenKind kind(TokenId id) const { return kinds_[static_cast<std::size_t>(id)]; }
  bool is_control(TokenId id) const { return kind(id) == TokenKind::control || kind(id) == TokenKind::unknown; }
  // Whether text may be spelled into the token without asking for special tokens: not if the file itself calls it
  // control or unknown. (A token that is control by name alone, as Qwen's "</s>", is still ordinary vocabulary to its
  // merges.)
  bool is_spellable(TokenId id) const { return spellable_[static_cast<std::size_t>(id)]; }
  std::optional<TokenId> find(std::string_view text) const;
  const std::vector<TokenId>& eog() const { return eog_; }  // ascending
  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> unknown() const { return unknown_; }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  bool adds_space() const { return adds_space_; }          // in front of a text (SentencePiece)
  std::string_view pre_tokenizer() const { return pre_; }  // byte_level only

 private:
  Vocabulary() = default;
  Status read_model(const artifact::GgufFile& file);
  Status read_tokens(const artifact::GgufFile& file);
  Status read_special(const artifact::GgufFile& file);
  Status read_flags(const artifact::GgufFile& file);
  Status make_pieces();
  Result<std::optional<TokenId>> special_id(const artifact::GgufFile& file, std::string_view key) const;
  void set_kind(TokenId id, TokenKind kind) { kinds_[static_cast<std::size_t>(id)] = kind; }

  Spelling spelling_ = Spelling::byte_level;
  std::string pre_;
  TextTable texts_, pieces_;
  std::vector<TokenKind> kinds_;
  std::vector<bool> spellable_;
  std::unordered_map<std::string_view, TokenId> ids_;
  std::vector<TokenId> eog_;
  std::optional<TokenId> bos_, eos_, unknown_;
  bool adds_bos_ = false, adds_eos_ = false, adds_space_ = false;
};

// GPT-2's byte alphabet: the byte that a character stands for.
std::optional<std::uint8_t> byte_of_char(char32_t c);
char32_t char_of_byte(std::uint8_t byte);

}  // namespace kvasir::text
