#include "engine/penalties.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

// Fibonacci hashing: neighbouring ids spread over the table.
std::uint32_t spread(TokenId token) { return static_cast<std::uint32_t>(token) * 0x9e3779b1u; }

}  // namespace

Penalties::Penalties(const SamplingParams& params, std::span<const TokenId> prompt, std::uint32_t most_outputs)
    : presence_(params.presence_penalty),
      frequency_(params.frequency_penalty),
      repetition_(params.repetition_penalty),
      counts_(params.penalizes()) {
  if (!counts_) return;
  std::vector<TokenId> seen;  // of the prompt only repetition takes notice
  if (repetition_ != 1) {
    seen.assign(prompt.begin(), prompt.end());
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  }
  const std::size_t most = seen.size() + most_outputs;
  past_.reserve(most);
  slots_.assign(std::bit_ceil(2 * most + 1), 0);
  for (const TokenId token : seen) find_or_add(token);
}

Penalties::Past& Penalties::find_or_add(TokenId token) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = spread(token) & mask;
  while (slots_[slot] != 0) {
    Past& past = past_[slots_[slot] - 1];
    if (past.token == token) return past;
    slot = (slot + 1) & mask;
  }
  KV_CHECK(past_.size() < past_.capacity(), "an answer keeps to its limit");
  past_.push_back({token, 0});
  slots_[slot] = static_cast<std::uint32_t>(past_.size());
  return past_.back();
}

void Penalties::push(TokenId token) {
  if (counts_) ++find_or_add(token).outputs;
}

void Penalties::apply(std::span<float> logits) const {
  for (const Past& past : past_) {
    float& logit = logits[static_cast<std::size_t>(past.token)];
    logit = logit > 0 ? logit / repetition_ : logit * repetition_;
    if (past.outputs == 0) continue;
    logit -= frequency_ * static_cast<float>(past.outputs);
    logit -= presence_;
  }
}

}  // namespace kvasir::engine
