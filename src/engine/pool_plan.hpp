// Internal to the engine layer: how a pool's configuration becomes those of the layers below. One place, so that what is
// planned is what is created.
// Thread rule: pure; any thread.
#pragma once

#include "artifact/geometry.hpp"
#include "core/core.hpp"
#include "engine/pool_config.hpp"
#include "model/forward.hpp"
#include "store/footprint.hpp"

namespace kvasir::engine {

// Every "0 = ..." replaced by what it stands for. Errors: validate()'s; bad_input for a max_model_len above the context.
Result<PoolConfig> resolve(PoolConfig config, const artifact::ModelGeometry& geometry, const format::KvGeometry& kv);

core::CoreConfig core_config(const PoolConfig& config, const store::StorePlan& store);
model::ForwardLimits forward_limits(const PoolConfig& config);

}  // namespace kvasir::engine
