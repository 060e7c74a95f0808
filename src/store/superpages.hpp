// How the arena is cut: superpages of one size, each sliced by a group into blocks of its own size.
// Thread rule: pure functions, any thread.
//
// One group alone: one superpage, cut to whole blocks. Several: the smallest multiple of a page in which every group's
// tail is under 1 %, so none pads its blocks to a common size.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace kvasir::store {

// A group's tail may waste less than 1 / kMaxTailFraction of a superpage.
inline constexpr std::uint64_t kMaxTailFraction = 100;

// Bytes of a superpage for several groups. block_bytes: each > 0.
// Returns the smallest multiple of `unit` with every tail under 1 %; exists below (kMaxTailFraction + 1) * the largest
// block, rounded up to `unit`. Errors: bad_input if a size overflows.
Result<std::uint64_t> choose_superpage_bytes(std::span<const std::uint64_t> block_bytes, std::uint64_t unit);

}  // namespace kvasir::store
