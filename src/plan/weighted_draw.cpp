#include "plan/weighted_draw.hpp"

#include "base/check.hpp"

namespace kvasir::plan {

WeightedDraw::WeightedDraw(std::span<const double> weights) : slots_(weights.size()) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  KV_CHECK(sum > 0, "something can be drawn");
  // Each slot is filled to 1: by its own share, and the rest from one that has more than its share.
  std::vector<double> share(weights.size());
  std::vector<std::uint32_t> small, large;
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    share[i] = weights[i] / sum * static_cast<double>(weights.size());
    slots_[i] = {std::uint64_t{1} << 32, i};
    (share[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t low = small.back(), high = large.back();
    small.pop_back();
    slots_[low] = {static_cast<std::uint64_t>(share[low] * 0x1p32), high};
    share[high] -= 1 - share[low];
    if (share[high] >= 1) continue;
    large.pop_back();
    small.push_back(high);
  }
  // Rounding may leave a slot of no weight unfilled: it must not be drawn.
  for (const std::uint32_t i : small) {
    if (weights[i] > 0) continue;
    std::uint32_t heaviest = 0;
    for (std::uint32_t k = 1; k < weights.size(); ++k) heaviest = weights[k] > weights[heaviest] ? k : heaviest;
    slots_[i] = {0, heaviest};
  }
}

std::uint32_t WeightedDraw::draw(PhiloxSequence& draws) const {
  const std::uint32_t i = draws.below(static_cast<std::uint32_t>(slots_.size()));
  return draws.next() < slots_[i].keep ? i : slots_[i].other;
}

}  // namespace kvasir::plan
