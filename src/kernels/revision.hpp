// The revision of the kernels' arithmetic: a part of every numeric id.
// Rule: whoever changes a bit of any logit (an operation, its order, a rounding) adds one, in the same change. A faster way
// to the same bits changes nothing. KV of another revision is then a stranger's, and is never taken for one's own.
// A test holds it to the committed hashes of logits: tests/data/continuation/revisions.json has each revision's, and they may
// only change together with the number (tests/kernels/revision_test.cpp).
#pragma once

#include <cstdint>

namespace kvasir::kernels {

inline constexpr std::uint32_t kKernelRevision = 1;

}  // namespace kvasir::kernels
