#include "engine/beam_search.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/fixed_math.hpp"

namespace kvasir::engine {
namespace {

constexpr float kFirstBand = 4.0f;   // of the candidates' walk: how much work, never which order

}  // namespace

BeamSearch::BeamSearch(const BeamParams& params, std::uint32_t max_new_tokens, std::span<const TokenId> ends,
                       std::uint32_t vocabulary, platform::Isa isa)
    : params_(params),
      max_new_tokens_(max_new_tokens),
      kept_(params.width * std::max<std::uint32_t>(2, 1 + static_cast<std::uint32_t>(ends.size()))),
      ends_(ends.begin(), ends.end()),
      isa_(isa),
      ranked_(vocabulary),
      block_max_(row_blocks(vocabulary)),
      beams_(1) {}

void BeamSearch::offer(std::uint32_t beam, std::span<const float> logits) {
  KV_CHECK(beam < beams_.size() && !over_, "logits of a beam that runs");
  const RowMax best = row_max(logits, block_max_);
  const double sum = sum_exp(logits, best.value, 1.0f, isa_);
  ranked_.start(logits, block_max_, best.value, kFirstBand);
  for (std::uint32_t i = 0; i < kept_; ++i) {
    const std::optional<Candidate> candidate = ranked_.next();
    if (!candidate) break;
    const auto logprob = static_cast<float>(log_probability(candidate->logit, best.value, sum));
    const bool ends = beams_[beam].tokens.size() + 1 == max_new_tokens_ || std::ranges::count(ends_, candidate->token) > 0;
    options_.push_back({beam, candidate->token, logprob, beams_[beam].score + logprob, ends});
  }
}

float BeamSearch::penalised(float score, std::size_t tokens) const {
  return score / static_cast<float>(pow_f64(static_cast<double>(tokens), static_cast<double>(params_.length_penalty)));
}

void BeamSearch::finish(const Option& option) {
  const Beam& beam = beams_[option.beam];
  Hypothesis done{beam.tokens, beam.logprobs, penalised(option.score, beam.tokens.size() + 1),
                  std::ranges::count(ends_, option.token) > 0};
  done.tokens.push_back(option.token);
  done.logprobs.push_back(option.logprob);
  const auto place = std::ranges::upper_bound(finished_, done.score, std::greater<>(), &Hypothesis::score);
  finished_.insert(place, std::move(done));
  if (finished_.size() > params_.width) finished_.pop_back();
}

void BeamSearch::advance() {
  // Options of one beam stand in order already; a stable sort keeps the earlier beam first among equals.
  std::ranges::stable_sort(options_, std::greater<>(), &Option::score);
  if (options_.size() > kept_) options_.resize(kept_);
  const bool full = finished_.size() == params_.width && params_.early_stopping == EarlyStopping::on;
  std::vector<Beam> running;
  next_.clear();
  for (std::uint32_t rank = 0; rank < options_.size(); ++rank) {
    const Option& option = options_[rank];
    if (option.ends) {
      if (rank < params_.width && !full) finish(option);
    } else if (running.size() < params_.width) {
      Beam& beam = running.emplace_back(beams_[option.beam]);
      beam.tokens.push_back(option.token);
      beam.logprobs.push_back(option.logprob);
      beam.score = option.score;
      next_.push_back({option.beam, option.token});
    }
  }
  options_.clear();
  beams_ = std::move(running);
  over_ = is_over();
}

bool BeamSearch::is_over() const {
  if (beams_.size() < params_.width) return true;   // nothing goes on: max_new_tokens, or too few words
  if (finished_.size() < params_.width) return false;
  if (params_.early_stopping == EarlyStopping::on) return true;
  const bool longest = params_.early_stopping == EarlyStopping::never && params_.length_penalty > 0;
  const std::size_t tokens = longest ? max_new_tokens_ : beams_.front().tokens.size();
  return penalised(beams_.front().score, tokens) <= finished_.back().score;
}

}  // namespace kvasir::engine
