// What an engine's bookkeeping costs. Thread rule: pure functions, any thread.
#pragma once

#include <cstdint>

#include "cache/kv_cache.hpp"
#include "engine/pool_config.hpp"

namespace kvasir::engine {

// Bytes of cache metadata, page tables and request slots. config: resolved (no zeros that stand for something).
std::uint64_t metadata_bytes(const PoolConfig& config, const cache::KvCache& cache);

}  // namespace kvasir::engine
