// The search behind every "how many would fit".
// Thread rule: pure; any thread.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace kvasir::plan {

// The largest value in [1, most] for which `fits` (a Result<bool>) holds, 0 if none. REQUIRES: it holds below any value
// it holds for.
template <class Fits>
Result<std::uint64_t> largest(std::uint64_t most, Fits&& fits) {
  std::uint64_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    KV_ASSIGN(const bool fit, fits(middle));
    (fit ? good : bad) = middle;
  }
  return good;
}

}  // namespace kvasir::plan
