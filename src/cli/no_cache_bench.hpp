// What a KV cache is for: the same greedy answer once out of the cache, and once by a whole forward pass for each token.
// With N tokens, positions 1 .. N, each way computes
//                              rows (projections, feed-forward)   query-key pairs (attention)
//   with the cache             N                                  N (N + 1) / 2
//   without                    N (N + 1) / 2                      N (N + 1) (N + 2) / 6
// per layer and head. The counts of a run are taken from the steps that it really made and compared with these.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "platform/terminal.hpp"

namespace kvasir::cli {

// What one way of generating N tokens took.
struct WayCount {
  std::uint64_t rows = 0;        // token rows through all layers
  std::uint64_t pairs = 0;       // (query, visible key) pairs, of one layer and head
  double seconds = 0;
};

struct NoCacheResult {
  std::uint32_t length = 0;      // N
  WayCount cached, uncached;     // counted and timed
};

// The closed forms. `seconds` is 0.
WayCount cached_closed_form(std::uint64_t length);
WayCount uncached_closed_form(std::uint64_t length);

// Floating-point operations (a multiply and an add are two): of one row through every layer's matrices, and of one
// query-key pair over all layers and heads (score and weighted sum).
double projection_flops_per_row(const artifact::ModelGeometry& geometry);
double attention_flops_per_pair(const artifact::ModelGeometry& geometry);

// Errors: the engine's; cancelled after a signal; internal if the two ways gave different tokens or a count differs from
// its closed form: both would be bugs.
Result<NoCacheResult> run_no_cache_bench(const std::shared_ptr<const model::Model>& model, std::uint32_t length,
                                         const engine::PoolConfig& config, const platform::InterruptScope& interrupt);

}  // namespace kvasir::cli
