#include "engine/logit_rules.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

}  // namespace

LogitRules::LogitRules(const SamplingParams& params, std::span<const TokenId> prompt, std::span<const TokenId> ends,
                       std::uint32_t most_outputs)
    : allowed_(params.allowed_token_ids),
      bad_words_(params.bad_words),
      min_tokens_(params.min_tokens),
      biases_(params.logit_bias),
      penalties_(params, prompt, most_outputs) {
  std::ranges::sort(allowed_);
  allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());
  for (const std::vector<TokenId>& word : bad_words_) longest_start_ = std::max(longest_start_, word.size() - 1);
  recent_.reserve(longest_start_ + 1);
  if (min_tokens_ == 0) return;
  ends_.assign(ends.begin(), ends.end());
  ends_.insert(ends_.end(), params.stop_token_ids.begin(), params.stop_token_ids.end());
}

bool LogitRules::needed_by(const SamplingParams& params) {
  return params.penalizes() || !params.logit_bias.empty() || !params.allowed_token_ids.empty() ||
         params.min_tokens > 0 || !params.bad_words.empty();
}

void LogitRules::allow(std::span<const float> raw, std::span<float> out) const {
  KV_CHECK(raw.size() == out.size(), "a row for a row");
  if (allowed_.empty()) {
    std::ranges::copy(raw, out.begin());
    return;
  }
  std::ranges::fill(out, kBanned);
  for (const TokenId token : allowed_) out[static_cast<std::size_t>(token)] = raw[static_cast<std::size_t>(token)];
}

void LogitRules::ban(std::span<float> out) const {
  for (const std::vector<TokenId>& word : bad_words_) {
    const std::span<const TokenId> start = std::span(word).first(word.size() - 1);
    if (start.size() > recent_.size()) continue;
    if (std::ranges::equal(start, std::span(recent_).last(start.size()))) {
      out[static_cast<std::size_t>(word.back())] = kBanned;
    }
  }
  if (outputs_ >= min_tokens_) return;
  for (const TokenId token : ends_) {
    // A tokenizer may know ids for which the model has no row.
    if (static_cast<std::size_t>(token) < out.size()) out[static_cast<std::size_t>(token)] = kBanned;
  }
}

void LogitRules::shift(std::span<float> out) const {
  for (const LogitBias& b : biases_) out[static_cast<std::size_t>(b.token)] += b.bias;
  penalties_.apply(out);
}

void LogitRules::apply(std::span<const float> raw, std::span<float> out) const {
  allow(raw, out);
  ban(out);
  shift(out);
}

void LogitRules::apply_without_bans(std::span<const float> raw, std::span<float> out) const {
  allow(raw, out);
  shift(out);
}

void LogitRules::push(TokenId token) {
  ++outputs_;
  penalties_.push(token);
  if (longest_start_ == 0) return;
  if (recent_.size() == longest_start_) recent_.erase(recent_.begin());
  recent_.push_back(token);
}

}  // namespace kvasir::engine
