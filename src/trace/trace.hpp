// A request trace: when requests came, how long they were, and which parts of their prompts were the same. No text.
// Thread rule: a value.
// Invariants (the reader checks them): arrivals never decrease and the first is at or after 0; lengths lie in
// [1, kMaxTokens]; a request with block ids has exactly ceil(input_tokens / block_tokens) of them.
#pragma once

#include <cstdint>
#include <vector>

namespace kvasir::trace {

// Longer than any context in use; sums of lengths stay far from overflow.
inline constexpr std::uint32_t kMaxTokens = 1u << 24;

struct TraceRequest {
  double arrival_s = 0;             // since the trace began
  std::uint32_t input_tokens = 0;   // of the prompt
  std::uint32_t output_tokens = 0;  // generated
  // One for each block of the prompt, the last may be partial. Equal ids mean an equal block after an equal prefix,
  // across requests. Empty: the trace does not say.
  std::vector<std::uint64_t> block_ids;
};

struct Trace {
  std::vector<TraceRequest> requests;
  std::uint32_t block_tokens = 0;  // prompt tokens a block id stands for; 0: no request has block ids
  bool timed = true;               // false: lengths alone, every arrival is 0
};

}  // namespace kvasir::trace
