#include "engine/ranked_candidates.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace kvasir::engine {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// std heaps keep the largest on top: "larger" is "ranks before".
bool below(const Candidate& a, const Candidate& b) { return ranks_before(b, a); }

}  // namespace

RankedCandidates::RankedCandidates(std::uint32_t vocabulary)
    : vocabulary_(vocabulary), heap_(vocabulary) {}

void RankedCandidates::start(std::span<const float> logits, std::span<const float> block_max, float max, float band) {
  KV_CHECK(logits.size() <= vocabulary_, "a row is no longer than the vocabulary");
  KV_CHECK(block_max.size() >= row_blocks(logits.size()), "one maximum a block");
  KV_CHECK(band > 0, "a band has a height");
  logits_ = logits;
  block_max_ = block_max;
  max_ = max;
  depth_ = band;
  upper_ = std::numeric_limits<float>::infinity();
  heap_size_ = 0;
  first_ = true;
}

std::optional<Candidate> RankedCandidates::next() {
  while (heap_size_ == 0) {
    if (!first_ && upper_ == kLowest) return std::nullopt;
    // A band deeper than any float reaches, or one that no longer moves the edge, takes all that is left.
    float lower = max_ - depth_;
    if (!(lower < upper_) || depth_ > 1e4f) lower = kLowest;
    gather(lower, upper_);
    upper_ = lower;
    depth_ *= 2;
    first_ = false;
  }
  std::pop_heap(heap_.data(), heap_.data() + heap_size_, below);
  return heap_[--heap_size_];
}

// All candidates with lower <= logit < upper (the first band has no upper edge; -infinity itself is no candidate).
void RankedCandidates::gather(float lower, float upper) {
  for (std::size_t b = 0; b * kRowBlock < logits_.size(); ++b) {
    if (!(block_max_[b] >= lower)) continue;
    const std::size_t end = std::min(logits_.size(), (b + 1) * kRowBlock);
    for (std::size_t i = b * kRowBlock; i < end; ++i) {
      const float x = logits_[i];
      if (x >= lower && (x < upper || first_) && x != kLowest) {
        heap_[heap_size_++] = {x, static_cast<TokenId>(i)};
      }
    }
  }
  std::make_heap(heap_.data(), heap_.data() + heap_size_, below);
}

}  // namespace kvasir::engine
