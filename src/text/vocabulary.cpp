#include "text/vocabulary.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>

#include "ffi/bpe.hpp"
#include "text/utf8.hpp"

namespace kvasir::text {

namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model", kPre = "tokenizer.ggml.pre",
                           kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

// Token names that end a generation wherever they occur, and whose tokens are control tokens even if the file says
// otherwise. The list is llama.cpp's, so that both stop at the same place.
constexpr std::array<std::string_view, 22> kEndNames = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|flush|>",
                                                        "<|calls|>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "</s>",
                                                        "<|eom_id|>",
                                                        "<EOT>",
                                                        "_<EOT>",
                                                        "[EOT]",
                                                        "[EOS]",
                                                        "<|end_of_text|>",
                                                        "<end_of_utterance>",
                                                        "<eos>",
                                                        "<turn|>",
                                                        "<|tool_response>",
                                                        "<｜end▁of▁sentence｜>",
                                                        "[e~["};

// Roles that a file names by key or, failing that, by the token's text.
struct NamedRole {
  std::string_view key;
  bool ends_generation;
  std::array<std::string_view, 8> names;
};
constexpr std::array<NamedRole, 8> kNamedRoles = {{
    {"tokenizer.ggml.eot_token_id", true, {}},
    {"tokenizer.ggml.eom_token_id", true, {}},
    {"tokenizer.ggml.fim_pre_token_id",
     false,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
      "<|prefix|>"}},
    {"tokenizer.ggml.fim_suf_token_id",
     false,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
      "<|suffix|>"}},
    {"tokenizer.ggml.fim_mid_token_id",
     false,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
      "<|middle|>"}},
    {"tokenizer.ggml.fim_pad_token_id", true, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {"tokenizer.ggml.fim_rep_token_id", true, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {"tokenizer.ggml.fim_sep_token_id", true, {"<|file_sep|>"}},
}};

Error bad(std::string message) { return Error{ErrorCode::bad_input, std::move(message)}; }

Result<bool> flag(const artifact::GgufFile& file, std::string_view key, bool absent) {
  if (file.find(key) == nullptr) return absent;
  return file.get_bool(key);
}

// GGUF's llama_token_type; 0 (undefined) counts as unused: it stands for nothing.
std::optional<TokenKind> kind_of_type(std::int64_t type) {
  switch (type) {
    case 0:
      return TokenKind::unused;
    case 1:
      return TokenKind::normal;
    case 2:
      return TokenKind::unknown;
    case 3:
      return TokenKind::control;
    case 4:
      return TokenKind::user_defined;
    case 5:
      return TokenKind::unused;
    case 6:
      return TokenKind::byte;
    default:
      return std::nullopt;
  }
}

// "<0x0A>" -> 10.
std::optional<std::uint8_t> byte_of_name(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return byte;
}

std::string decode_byte_level(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_step(text, at).length;
    if (const auto byte = byte_of_char(utf8_code_point(text, at))) {
      out.push_back(static_cast<char>(*byte));
    } else {
      out.append(text.substr(at, length));  // not of the alphabet: stands for itself
    }
    at += length;
  }
  return out;
}

std::string decode_sentence_piece(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool space = text.substr(at).starts_with(kSpaceMark);
    out.push_back(space ? ' ' : text[at]);
    at += space ? kSpaceMark.size() : 1;
  }
  return out;
}

}  // namespace

void TextTable::append(std::string_view text) {
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  ends_.push_back(bytes_.size());
}

char32_t char_of_byte(std::uint8_t byte) {
  if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD)) return byte;
  if (byte <= 0x20) return char32_t{0x100} + byte;
  if (byte == 0xAD) return 0x143;
  return char32_t{0x121} + (byte - 0x7F);  // 7F to A0
}

std::optional<std::uint8_t> byte_of_char(char32_t c) {
  if ((c >= 0x21 && c <= 0x7E) || (c >= 0xA1 && c <= 0xFF && c != 0xAD)) return static_cast<std::uint8_t>(c);
  if (c >= 0x100 && c <= 0x120) return static_cast<std::uint8_t>(c - 0x100);
  if (c >= 0x121 && c <= 0x142) return static_cast<std::uint8_t>(c - 0x121 + 0x7F);
  if (c == 0x143) return std::uint8_t{0xAD};
  return std::nullopt;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

Result<Vocabulary> Vocabulary::from_gguf(const artifact::GgufFile& file) {
  Vocabulary vocabulary;
  KV_TRY(vocabulary.read_model(file));
  KV_TRY(vocabulary.read_tokens(file));
  KV_TRY(vocabulary.read_special(file));
  KV_TRY(vocabulary.read_flags(file));
  KV_TRY(vocabulary.make_pieces());
  return vocabulary;
}

Status Vocabulary::read_model(const artifact::GgufFile& file) {
  KV_ASSIGN(const std::string_view model, file.get_string(kModel));
  if (model == "llama") {
    spelling_ = Spelling::sentence_piece;
    return ok_status();
  }
  if (model != "gpt2") {
    return Error{
        ErrorCode::unsupported,
        fmt::format("{}: {} is \"{}\"; offered are \"gpt2\" (byte-level BPE) and \"llama\" (SentencePiece BPE)",
                    file.name(), kModel, model)};
  }
  pre_ = "default";  // as llama.cpp takes a file without the key
  if (file.find(kPre) != nullptr) {
    KV_ASSIGN(const std::string_view pre, file.get_string(kPre));
    pre_ = pre == "gpt2" ? "gpt-2" : pre;
  }
  const auto offered = ffi::Bpe::pre_tokenizers();
  if (std::find(offered.begin(), offered.end(), pre_) == offered.end()) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{}: {} is \"{}\"; offered are {}", file.name(), kPre, pre_, fmt::join(offered, ", "))};
  }
  return ok_status();
}

Status Vocabulary::read_tokens(const artifact::GgufFile& file) {
  KV_ASSIGN(const std::span<const std::string_view> tokens, file.get_strings(kTokens));
  if (tokens.empty()) return bad(fmt::format("{}: {} is empty; valid: one text a token", file.name(), kTokens));
  kinds_.assign(tokens.size(), TokenKind::normal);
  spellable_.assign(tokens.size(), true);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (const auto at = first_invalid_utf8(tokens[id])) {
      return bad(fmt::format("{}: {}[{}] is not UTF-8 at byte {}", file.name(), kTokens, id, *at));
    }
    texts_.append(tokens[id].empty() ? fmt::format("[EMPTY_{}]", id) : tokens[id]);
  }
  ids_.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto [known, fresh] = ids_.emplace(texts_[static_cast<TokenId>(id)], static_cast<TokenId>(id));
    if (!fresh) {
      return bad(fmt::format("{}: {}[{}] and [{}] are both \"{}\"; valid: distinct texts", file.name(), kTokens,
                             known->second, id, known->first));
    }
  }
  if (file.find(kTypes) == nullptr) return ok_status();
  KV_ASSIGN(const std::span<const std::int64_t> types, file.get_ints(kTypes));
  if (types.size() < tokens.size()) {
    return bad(fmt::format("{}: {} has {} entries; valid: one for each of the {} tokens", file.name(), kTypes,
                           types.size(), tokens.size()));
  }
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto kind = kind_of_type(types[id]);
    if (!kind) return bad(fmt::format("{}: {}[{}] is {}; valid: 0 to 6", file.name(), kTypes, id, types[id]));
    kinds_[id] = *kind;
    spellable_[id] = *kind != TokenKind::control && *kind != TokenKind::unknown;
  }
  return ok_status();
}

Result<std::optional<TokenId>> Vocabulary::special_id(const artifact::GgufFile& file, std::string_view key) const {
  if (file.find(key) == nullptr) return std::optional<TokenId>();
  KV_ASSIGN(const std::uint64_t id, file.get_uint(key));
  if (id >= size()) {
    return bad(fmt::format("{}: {} is {}; valid: below {}, the number of tokens", file.name(), key, id, size()));
  }
  return std::optional(static_cast<TokenId>(id));
}

Status Vocabulary::read_special(const artifact::GgufFile& file) {
  KV_ASSIGN(bos_, special_id(file, "tokenizer.ggml.bos_token_id"));
  KV_ASSIGN(eos_, special_id(file, "tokenizer.ggml.eos_token_id"));
  KV_ASSIGN(unknown_, special_id(file, "tokenizer.ggml.unknown_token_id"));
  for (const NamedRole& role : kNamedRoles) {
    KV_ASSIGN(std::optional<TokenId> id, special_id(file, role.key));
    for (const std::string_view name : role.names) {
      if (id || name.empty()) break;
      if ((id = find(name))) set_kind(*id, TokenKind::control);
    }
    if (id && role.ends_generation) eog_.push_back(*id);
  }
  for (const std::string_view name : kEndNames) {
    if (const auto id = find(name)) {
      set_kind(*id, TokenKind::control);
      eog_.push_back(*id);
    }
  }
  if (eos_) eog_.push_back(*eos_);
  std::sort(eog_.begin(), eog_.end());
  eog_.erase(std::unique(eog_.begin(), eog_.end()), eog_.end());
  return ok_status();
}

Status Vocabulary::read_flags(const artifact::GgufFile& file) {
  const bool pieces = spelling_ == Spelling::sentence_piece;
  constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token", kAddEos = "tokenizer.ggml.add_eos_token";
  KV_ASSIGN(adds_bos_, flag(file, kAddBos, pieces || pre_ == "llama-bpe"));
  KV_ASSIGN(adds_eos_, flag(file, kAddEos, false));
  // Byte-level vocabularies have no such step, whatever the file says (SmolLM2's says false).
  KV_ASSIGN(const bool space, flag(file, "tokenizer.ggml.add_space_prefix", true));
  adds_space_ = pieces && space;
  if (adds_bos_ && !bos_ && pieces && size() > 1) bos_ = 1;  // SentencePiece's own ids
  if (adds_eos_ && !eos_ && pieces && size() > 2) eos_ = 2;
  if (adds_bos_ && !bos_)
    return bad(fmt::format("{}: {} holds, but no tokenizer.ggml.bos_token_id", file.name(), kAddBos));
  if (adds_eos_ && !eos_)
    return bad(fmt::format("{}: {} holds, but no tokenizer.ggml.eos_token_id", file.name(), kAddEos));
  return ok_status();
}

Status Vocabulary::make_pieces() {
  for (std::size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    switch (kinds_[i]) {
      case TokenKind::normal:
        pieces_.append(spelling_ == Spelling::byte_level ? decode_byte_level(text(id))
                                                         : decode_sentence_piece(text(id)));
        break;
      case TokenKind::byte: {
        const auto byte = byte_of_name(text(id));
        if (!byte)
          return bad(fmt::format("{}[{}] is a byte token \"{}\"; valid: <0x00> to <0xFF>", kTokens, i, text(id)));
        const char c = static_cast<char>(*byte);
        pieces_.append({&c, 1});
        break;
      }
      case TokenKind::unused:
        pieces_.append("");
        break;
      case TokenKind::control:
      case TokenKind::unknown:
      case TokenKind::user_defined:
        pieces_.append(text(id));
        break;
    }
  }
  return ok_status();
}

}  // namespace kvasir::text
