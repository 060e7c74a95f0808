// What every class's source starts with. Only plain functions may be instantiated in these sources: anything the linker
// might share with the rest of the program would carry this class's instructions along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/fixed_math.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/kernels.hpp"
#include "kernels/simd/intrinsics.hpp"
#include "kernels/simd/simd.hpp"

#define KV_INLINE [[gnu::always_inline]] inline
#define KV_NOINLINE [[gnu::noinline]]

namespace kvasir::kernels {
inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kPrefetchBytes = 4096;   // ahead in a weight stream: two dozen cache lines in flight hide DRAM
}  // namespace kvasir::kernels
