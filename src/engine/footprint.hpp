// What an engine allocates for a model and a configuration, by part. Engine::create takes its sizes from here and reports
// them as `computed`; the planner asks the same function.
// Thread rule: pure; any thread.
//
//   store.capacity_bytes + workspace() + metadata() = what an engine takes beside the weights, threads' stacks apart
#pragma once

#include <cstdint>

#include "artifact/geometry.hpp"
#include "base/result.hpp"
#include "engine/pool_config.hpp"
#include "store/footprint.hpp"

namespace kvasir::engine {

// Bytes.
struct EngineFootprint {
  PoolConfig config;                    // every "0 = ..." replaced by what it stands for
  store::StorePlan store;               // the KV cache
  std::uint64_t activations = 0;        // what a step writes between its layers, attention's partial results included
  std::uint64_t logits = 0;             // rows of logits held at a time
  std::uint64_t sampler = 0;            // candidates of a row, one set a thread
  std::uint64_t metadata_of_core = 0;   // block pools, block tables, request slots, queues, the plan of a step
  std::uint64_t page_tables = 0;        // of one step

  std::uint64_t workspace() const { return activations + logits + sampler; }
  std::uint64_t metadata() const { return metadata_of_core + page_tables; }
};

// As an engine is created. kv: what is stored of the model, geometry.kv_geometry() for an engine.
// Errors: bad_input (a key of the configuration, its value, what is valid); does_not_fit (kv_cache_bytes below one block
// of each group, both numbers).
Result<EngineFootprint> engine_footprint(const artifact::ModelGeometry& geometry, const format::KvGeometry& kv,
                                         const PoolConfig& config);
// The same around a cache that is planned already; config.kv_cache_bytes does not count. Errors: bad_input.
Result<EngineFootprint> engine_footprint(const artifact::ModelGeometry& geometry, store::StorePlan store,
                                         const PoolConfig& config);

}  // namespace kvasir::engine
