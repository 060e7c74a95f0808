// How the arena is cut: superpages of one size, each sliced by a group into blocks of its own size.
// Thread rule: pure functions, any thread.
//
// One group alone: one superpage, cut to whole blocks. Several: a multiple of a page in which every group's tail is under
// 1 %, so none pads its blocks to a common size. The smallest such size, unless one up to twice as large loses less:
//
//   loss = the worst group's tail, as part of a superpage            (of every superpage)
//        + half a superpage a group, as part of kWeighedSuperpages   (of the arena, once: a group's last one is half full)
//          of the smallest size
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace kvasir::store {

// A group's tail may waste less than 1 / kMaxTailFraction of a superpage.
inline constexpr std::uint64_t kMaxTailFraction = 100;

// What an arena is assumed to have of the smallest superpages when a larger size is weighed: the choice does not depend on
// the capacity, so that a plan for more memory is the same plan with more superpages.
inline constexpr std::uint64_t kWeighedSuperpages = 400;

// Bytes of a superpage for several groups: a multiple of `unit`, as above. block_bytes: each > 0.
// The smallest size is below (kMaxTailFraction + 1) * the largest block, rounded up to `unit`. Errors: bad_input if a size
// overflows.
Result<std::uint64_t> choose_superpage_bytes(std::span<const std::uint64_t> block_bytes, std::uint64_t unit);

}  // namespace kvasir::store
