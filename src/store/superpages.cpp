#include "store/superpages.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::store {

namespace {

bool small_tails(std::uint64_t bytes, std::span<const std::uint64_t> block_bytes) {
  return std::ranges::all_of(block_bytes, [bytes](std::uint64_t block) { return bytes % block < ceil_div(bytes, kMaxTailFraction); });
}

// Of a size: see the header. `smallest`: the unit of the second term.
double loss(std::uint64_t bytes, std::uint64_t smallest, std::span<const std::uint64_t> block_bytes) {
  std::uint64_t tail = 0;
  for (const std::uint64_t block : block_bytes) tail = std::max(tail, bytes % block);
  const auto groups = static_cast<double>(block_bytes.size()), size = static_cast<double>(bytes);
  return static_cast<double>(tail) / size + groups / 2 * size / static_cast<double>(smallest) / static_cast<double>(kWeighedSuperpages);
}

}  // namespace

Result<std::uint64_t> choose_superpage_bytes(std::span<const std::uint64_t> block_bytes, std::uint64_t unit) {
  KV_CHECK(!block_bytes.empty() && unit > 0, "a superpage is chosen for groups, in units");
  const std::uint64_t largest = std::ranges::max(block_bytes);
  KV_ASSIGN(const std::uint64_t enough, checked_mul(largest, 2 * (kMaxTailFraction + 1)));
  KV_TRY(checked_add(enough, 2 * unit));
  std::uint64_t smallest = round_up(largest, unit);
  while (!small_tails(smallest, block_bytes)) {
    smallest += unit;
    KV_CHECK(smallest <= enough, "a hundred of the largest blocks have every tail under 1 %");
  }
  std::uint64_t best = smallest;
  for (std::uint64_t bytes = smallest + unit; bytes <= 2 * smallest; bytes += unit)
    if (small_tails(bytes, block_bytes) && loss(bytes, smallest, block_bytes) < loss(best, smallest, block_bytes)) best = bytes;
  return best;
}

}  // namespace kvasir::store
