#include "engine/answer.hpp"

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

// Longer than the text of a token in any vocabulary offered, so that a step's text fits without growing.
constexpr std::size_t kReservedTextBytes = 512;

}  // namespace

Answer::Answer(const GenerateRequest& request, std::uint32_t max_tokens, const text::Tokenizer* tokenizer)
    : tokenizer_(tokenizer), stops_(request.stop, request.include_stop), max_tokens_(max_tokens),
      ignore_eos_(request.ignore_eos) {
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, !request.special_text);
  std::size_t longest_stop = 0;
  for (const std::string& stop : request.stop) longest_stop = std::max(longest_stop, stop.size());
  text_.reserve(kReservedTextBytes + longest_stop);
  piece_.reserve(kReservedTextBytes);
}

bool Answer::ends_text(TokenId token) const {
  return tokenizer_ != nullptr && !ignore_eos_ && tokenizer_->contains(token) && tokenizer_->is_eog(token);
}

Answer::Push Answer::push(TokenId token) {
  KV_CHECK(tokens_ < max_tokens_, "an answer keeps to its limit");
  ++tokens_;
  text_.clear();
  Push result;
  const bool end = ends_text(token);
  // The model's rows may be padded beyond the tokenizer's vocabulary; such an id has no text.
  if (detokenizer_ && tokenizer_->contains(token)) {
    piece_.clear();
    detokenizer_->append(token, piece_);
    result.stop_index = stops_.push(piece_, text_);
  }
  if (result.stop_index >= 0) {
    result.finish = FinishReason::stop;
    return result;
  }
  if (end) result.finish = FinishReason::stop;
  else if (tokens_ == max_tokens_) result.finish = FinishReason::length;
  if (result.finish == FinishReason::none) return result;
  // The end: a character that stayed open, then what was held back. The former may complete a stop string.
  if (detokenizer_) result.stop_index = stops_.push(detokenizer_->finish(), text_);
  if (result.stop_index >= 0) result.finish = FinishReason::stop;
  else stops_.flush(text_);
  return result;
}

}  // namespace kvasir::engine
