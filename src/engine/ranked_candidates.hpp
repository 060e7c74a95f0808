// The vocabulary in (logit descending, id ascending) order, only as far as somebody walks.
//
// Every cut of sampling keeps a prefix of this order, and most prefixes are short, so nothing sorts the vocabulary.
// Candidates are gathered band by band downward from the maximum; a band becomes a heap, and each step pops one. Blocks
// whose maximum lies below the band are skipped. Bands only decide how much work a walk costs, never the order.
//
// Thread rule: one owner. Allocates at construction only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.hpp"
#include "engine/row_math.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::engine {

struct Candidate {
  float logit = 0;
  TokenId token = 0;
};

// a comes before b. A total order: logits of candidates are never NaN.
constexpr bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

class RankedCandidates {
 public:
  explicit RankedCandidates(std::uint32_t vocabulary);

  // Starts a walk. logits and block_max outlive it; `max` and `block_max` are row_max's. band: height of the first band
  // in logits, > 0; each next one is twice as high. REQUIRES: logits.size() <= vocabulary.
  void start(std::span<const float> logits, std::span<const float> block_max, float max, float band);

  // The next candidate; none when all are given out. Logits of NaN or -infinity are no candidates.
  std::optional<Candidate> next();

  static std::uint64_t bytes(std::uint32_t vocabulary) { return std::uint64_t{vocabulary} * sizeof(Candidate); }

 private:
  void gather(float lower, float upper);

  std::uint32_t vocabulary_;
  platform::AlignedArray<Candidate> heap_;   // [vocabulary], the first heap_size_ are a heap with the best on top
  std::size_t heap_size_ = 0;
  std::span<const float> logits_, block_max_;
  float upper_ = 0;   // candidates at or above it have been gathered (all, once it is -infinity)
  float max_ = 0, depth_ = 0;
  bool first_ = true;
};

}  // namespace kvasir::engine
