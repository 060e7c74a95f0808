#include "engine/answer.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

// Longer than the text of a token in any vocabulary offered, so that a step's text fits without growing.
constexpr std::size_t kReservedTextBytes = 512;

}  // namespace

Answer::Answer(const GenerateRequest& request, std::uint32_t max_tokens, const text::Tokenizer* tokenizer)
    : tokenizer_(tokenizer), stops_(request.stop, request.include_stop), stop_tokens_(request.sampling.stop_token_ids),
      min_tokens_(request.sampling.min_tokens), max_tokens_(max_tokens), ignore_eos_(request.ignore_eos),
      include_stop_(request.include_stop) {
  std::ranges::sort(stop_tokens_);
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, !request.special_text);
  std::size_t longest_stop = 0;
  for (const std::string& stop : request.stop) longest_stop = std::max(longest_stop, stop.size());
  text_.reserve(kReservedTextBytes + longest_stop);
  piece_.reserve(kReservedTextBytes);
}

bool Answer::ends_text(TokenId token) const {
  return tokenizer_ != nullptr && !ignore_eos_ && tokenizer_->contains(token) && tokenizer_->is_eog(token);
}

bool Answer::is_stop(TokenId token) const { return std::ranges::binary_search(stop_tokens_, token); }

Answer::Push Answer::push(TokenId token) {
  KV_CHECK(tokens_ < max_tokens_, "an answer keeps to its limit");
  ++tokens_;
  text_.clear();
  Push result;
  const bool may_end = tokens_ > min_tokens_;
  const bool end = may_end && ends_text(token);
  const bool stop = may_end && !end && is_stop(token);
  if (stop) result.stop_token = token;
  // The model's rows may be padded beyond the tokenizer's vocabulary; such an id has no text. Nor has a stop token,
  // unless the answer keeps what ended it.
  if (detokenizer_ && tokenizer_->contains(token) && (!stop || include_stop_)) {
    piece_.clear();
    detokenizer_->append(token, piece_);
    if (!stop) result.stop_index = stops_.push(piece_, text_, may_end);
    else stops_.push(piece_, text_, false);   // the stop token ends it, not a stop string that its text completes
  }
  if (result.stop_index >= 0) {
    result.finish = FinishReason::stop;
    return result;
  }
  if (end || stop) result.finish = FinishReason::stop;
  else if (tokens_ == max_tokens_) result.finish = FinishReason::length;
  if (result.finish != FinishReason::none) close(result);
  return result;
}

// A character that stayed open, then what was held back. The former may complete a stop string.
void Answer::close(Push& result) {
  const bool may_end = tokens_ > min_tokens_ && result.stop_token < 0;
  if (detokenizer_) result.stop_index = stops_.push(detokenizer_->finish(), text_, may_end);
  if (result.stop_index >= 0) result.finish = FinishReason::stop;
  else stops_.flush(text_);
}

}  // namespace kvasir::engine
