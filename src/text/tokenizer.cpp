#include "text/tokenizer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.hpp"
#include "ffi/bpe.hpp"
#include "text/score_merge.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace kvasir::text {

namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// Texts as the BPE library may reach them: tokens that cannot be spelled have none.
Result<ffi::Bpe> make_bpe(const Vocabulary& vocabulary, const artifact::GgufFile& file) {
  KV_ASSIGN(const std::span<const std::string_view> merges, file.get_strings("tokenizer.ggml.merges"));
  std::vector<std::string_view> texts(vocabulary.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (vocabulary.is_spellable(id)) texts[i] = vocabulary.text(id);
  }
  const std::string_view pre = vocabulary.pre_tokenizer();
  auto bpe = ffi::Bpe::create(texts, merges, pre, pre == "llama-bpe");
  if (!bpe) return Error{bpe.error().code, fmt::format("{}: {}", file.name(), bpe.error().message)};
  return bpe;
}

std::vector<std::uint8_t> find_missing_bytes(const Vocabulary& vocabulary) {
  std::vector<std::uint8_t> missing;
  for (unsigned byte = 0; byte < 0xF5; ++byte) {
    if (byte == 0xC0 || byte == 0xC1) continue;  // never in valid UTF-8
    std::string text;
    append_utf8(text, char_of_byte(static_cast<std::uint8_t>(byte)));
    const auto id = vocabulary.find(text);
    if (!id || !vocabulary.is_spellable(*id)) missing.push_back(static_cast<std::uint8_t>(byte));
  }
  return missing;
}

bool touches(const SpecialTokens::Match& match, std::span<const TextRange> literal) {
  const auto first = std::partition_point(literal.begin(), literal.end(),
                                          [&](const TextRange& range) { return range.end <= match.begin; });
  return first != literal.end() && first->begin < match.end;
}

}  // namespace

std::string_view to_string(TokenKind kind) {
  switch (kind) {
    case TokenKind::normal:
      return "normal";
    case TokenKind::unknown:
      return "unknown";
    case TokenKind::control:
      return "control";
    case TokenKind::user_defined:
      return "user_defined";
    case TokenKind::unused:
      return "unused";
    case TokenKind::byte:
      return "byte";
  }
  return "?";
}

struct Tokenizer::State {
  explicit State(Vocabulary v) : vocabulary(std::move(v)) {}
  State(const State&) = delete;

  Vocabulary vocabulary;
  SpecialTokens special;
  std::optional<ffi::Bpe> bpe;            // byte_level
  std::optional<ScoreMerge> score_merge;  // sentence_piece; refers to `vocabulary`
  std::vector<TokenId> control;
  std::vector<std::uint8_t> missing_bytes;

  Result<std::vector<TokenId>> encode(std::string_view text,
                                      const std::function<bool(const SpecialTokens::Match&)>& allowed, bool add_bos,
                                      bool add_eos) const;
  Status encode_plain(std::string_view text, bool after_special, std::vector<TokenId>& out) const;
};

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::from_gguf(const artifact::GgufFile& file) {
  KV_ASSIGN(Vocabulary vocabulary, Vocabulary::from_gguf(file));
  auto state = std::make_unique<State>(std::move(vocabulary));
  for (std::size_t i = 0; i < state->vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenKind kind = state->vocabulary.kind(id);
    if (state->vocabulary.is_control(id)) state->control.push_back(id);
    if (state->vocabulary.is_control(id) || kind == TokenKind::user_defined) {
      state->special.add(state->vocabulary.text(id), id);
    }
  }
  if (state->vocabulary.spelling() == Spelling::byte_level) {
    KV_ASSIGN(state->bpe, make_bpe(state->vocabulary, file));
    state->missing_bytes = find_missing_bytes(state->vocabulary);
  } else {
    KV_ASSIGN(state->score_merge, ScoreMerge::create(state->vocabulary, file));
  }
  return Tokenizer(std::move(state));
}

Status Tokenizer::State::encode_plain(std::string_view text, bool after_special, std::vector<TokenId>& out) const {
  if (bpe) {
    KV_ASSIGN(const std::vector<TokenId> ids, bpe->encode(text));
    out.insert(out.end(), ids.begin(), ids.end());
    return ok_status();
  }
  std::string spelled;
  spelled.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  if (vocabulary.adds_space() && after_special) spelled += kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      spelled += kSpaceMark;
    } else {
      spelled += c;
    }
  }
  score_merge->encode(spelled, out);
  return ok_status();
}

Result<std::vector<TokenId>> Tokenizer::State::encode(std::string_view text,
                                                      const std::function<bool(const SpecialTokens::Match&)>& allowed,
                                                      bool add_bos, bool add_eos) const {
  if (text.size() > kMaxTextBytes) {
    return Error{ErrorCode::bad_input,
                 fmt::format("a text of {} bytes; valid: at most {}", text.size(), kMaxTextBytes)};
  }
  if (const auto at = first_invalid_utf8(text)) {
    return Error{ErrorCode::bad_input,
                 fmt::format("the text is not UTF-8: byte {} (0x{:02X})", *at, static_cast<unsigned char>(text[*at]))};
  }
  const bool wants_bos = add_bos && vocabulary.adds_bos();
  std::vector<TokenId> out;
  if (wants_bos) out.push_back(*vocabulary.bos());
  std::size_t at = 0;
  for (const SpecialTokens::Match& match : special.find(text, allowed)) {
    if (match.begin > at) KV_TRY(encode_plain(text.substr(at, match.begin - at), true, out));
    // Exactly one BOS in front, whoever wrote it.
    const bool second_bos = add_bos && vocabulary.bos() == match.id && out.size() == 1 && out[0] == match.id;
    if (!second_bos) out.push_back(match.id);
    at = match.end;
  }
  if (at < text.size()) KV_TRY(encode_plain(text.substr(at), true, out));
  if (add_eos && vocabulary.adds_eos()) out.push_back(*vocabulary.eos());
  return out;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const auto allowed = [&](const SpecialTokens::Match& match) {
    return options.parse_special || !state_->vocabulary.is_control(match.id);
  };
  return state_->encode(text, allowed, options.add_special, options.add_special);
}

Result<std::vector<TokenId>> Tokenizer::encode_guarded(std::string_view text, std::span<const TextRange> literal,
                                                       std::span<const TokenId> structural, bool add_bos) const {
  const auto allowed = [&](const SpecialTokens::Match& match) {
    const bool guarded = state_->vocabulary.is_control(match.id) ||
                         std::find(structural.begin(), structural.end(), match.id) != structural.end();
    return !guarded || !touches(match, literal);
  };
  return state_->encode(text, allowed, add_bos, false);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  bool at_start = state_->vocabulary.adds_space();
  for (const TokenId id : ids) {
    if (!contains(id)) {
      return Error{ErrorCode::bad_input, fmt::format("token id {}; valid: 0 to {}", id, vocab_size() - 1)};
    }
    const bool special = state_->vocabulary.is_control(id);
    if (special && skip_special) continue;
    std::string_view text = piece(id);
    if (at_start && !special && text.starts_with(' ')) text.remove_prefix(1);
    if (!special) at_start = false;
    out += text;
  }
  return out;
}

std::string_view Tokenizer::piece(TokenId id) const {
  KV_CHECK(contains(id), "an id of the vocabulary");
  return state_->vocabulary.piece(id);
}

TokenKind Tokenizer::kind(TokenId id) const {
  KV_CHECK(contains(id), "an id of the vocabulary");
  return state_->vocabulary.kind(id);
}

bool Tokenizer::is_eog(TokenId id) const {
  const auto& eog = state_->vocabulary.eog();
  return std::binary_search(eog.begin(), eog.end(), id);
}

std::span<const TokenId> Tokenizer::eog_ids() const { return state_->vocabulary.eog(); }
std::size_t Tokenizer::vocab_size() const { return state_->vocabulary.size(); }
std::optional<TokenId> Tokenizer::bos() const { return state_->vocabulary.bos(); }
std::optional<TokenId> Tokenizer::eos() const { return state_->vocabulary.eos(); }
bool Tokenizer::adds_bos() const { return state_->vocabulary.adds_bos(); }
std::span<const std::uint8_t> Tokenizer::missing_bytes() const { return state_->missing_bytes; }
std::span<const TokenId> Tokenizer::control_ids() const { return state_->control; }
std::optional<TokenId> Tokenizer::find(std::string_view token_text) const {
  return state_->vocabulary.find(token_text);
}

std::vector<TokenId> Tokenizer::structural_tokens_in(std::string_view text) const {
  const auto markup = [&](const SpecialTokens::Match& match) {
    const std::string_view token = state_->vocabulary.text(match.id);
    return state_->vocabulary.kind(match.id) == TokenKind::user_defined && token.size() > 2 &&
           (token.front() == '<' || token.front() == '[');
  };
  std::vector<TokenId> ids;
  for (const SpecialTokens::Match& match : state_->special.find(text, markup)) ids.push_back(match.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace kvasir::text
