// What GET /kv/stats answers: where every byte of the KV cache is, in all and group by group.
// Thread rule: pure; any thread.
// Invariants: the equations that the answer's reader can check, see docs/serve.md.
#pragma once

#include "server/api/api_result.hpp"
#include "server/engine_loop_stats.hpp"

namespace kvasir::server {

api::Json kv_stats_json(const LoopStats& stats);

}  // namespace kvasir::server
