#include "text/detokenizer.hpp"

#include "text/utf8.hpp"

namespace kvasir::text {

std::string Detokenizer::push(TokenId id) {
  std::string out;
  append(id, out);
  return out;
}

void Detokenizer::append(TokenId id, std::string& out) {
  const TokenKind kind = tokenizer_->kind(id);
  if (skip_special_ && (kind == TokenKind::control || kind == TokenKind::unknown)) return;
  pending_ += tokenizer_->piece(id);
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Step step = utf8_step(pending_, at);
    if (step.kind == Utf8Kind::cut_off) break;
    if (step.kind == Utf8Kind::character) {
      out.append(pending_, at, step.length);
    } else {
      out += kReplacementCharacter;
    }
    at += step.length;
  }
  pending_.erase(0, at);
}

std::string Detokenizer::finish() {
  const bool open = !pending_.empty();
  pending_.clear();
  return std::string(open ? kReplacementCharacter : std::string_view());
}

}  // namespace kvasir::text
