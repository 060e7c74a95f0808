#include "engine/footprint.hpp"

#include "cache/footprint.hpp"
#include "core/core.hpp"
#include "engine/step_batch.hpp"

namespace kvasir::engine {

std::uint64_t metadata_bytes(const PoolConfig& config, const cache::KvCache& cache) {
  std::uint64_t sum = StepBatch::bytes(cache);
  for (std::uint32_t group = 0; group < cache.groups(); ++group) {
    sum += cache::pool_metadata_bytes(cache.stats(group).pool.total, config.block_order_seed != 0);
    sum += cache::table_metadata_bytes(config.max_sequences, cache.table_capacity(group));
  }
  // A slot, and a place in each of the core's three lists and in its list of free slots.
  const std::uint64_t one_request = sizeof(core::Request) + 3 * sizeof(RequestId) + sizeof(std::uint32_t);
  return sum + config.max_queued * one_request;
}

}  // namespace kvasir::engine
