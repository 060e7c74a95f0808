#include "store/superpages.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::store {

Result<std::uint64_t> choose_superpage_bytes(std::span<const std::uint64_t> block_bytes, std::uint64_t unit) {
  KV_CHECK(!block_bytes.empty() && unit > 0, "a superpage is chosen for groups, in units");
  const std::uint64_t largest = std::ranges::max(block_bytes);
  KV_ASSIGN(const std::uint64_t enough, checked_mul(largest, kMaxTailFraction + 1));
  KV_TRY(checked_add(enough, unit));
  for (std::uint64_t bytes = round_up(largest, unit);; bytes += unit) {
    const auto small_tail = [bytes](std::uint64_t block) { return bytes % block < ceil_div(bytes, kMaxTailFraction); };
    if (std::ranges::all_of(block_bytes, small_tail)) return bytes;
    KV_CHECK(bytes <= enough, "a hundred of the largest blocks have every tail under 1 %");
  }
}

}  // namespace kvasir::store
