// Known fault B19, "the limit is exact": what fits a pool of 4 blocks of 16 tokens, where the last token of an answer is
// never fed back and needs no row. For the cache alone and for the core that drives it.
#pragma once

#include <cstdint>

namespace kvasir::test {

struct AdmissionCase {
  std::uint32_t prompt, max_new;
  bool fits;
};

inline constexpr AdmissionCase kFourBlocksOfSixteen[] = {
    {64, 0, true}, {63, 1, true},  {64, 1, true},  {60, 4, true},  {60, 5, true},  {1, 63, true},
    {1, 64, true}, {65, 0, false}, {64, 2, false}, {60, 6, false}, {1, 65, false},
};

}  // namespace kvasir::test
