#include "server/app/kv_stats.hpp"

#include <string_view>
#include <utility>

namespace kvasir::server {
namespace {

using api::Json;

std::string_view kind_of(const engine::GroupAccounting& g) { return g.window == 0 ? "full" : g.chunked ? "chunk" : "window"; }

Json group_json(const engine::GroupAccounting& g) {
  return {{"kind", kind_of(g)},
          {"window", g.window},
          {"layers", g.layers},
          {"kv_heads", g.kv_heads},
          {"head_dim", g.head_dim},
          {"block_tokens", g.block_tokens},
          {"block_bytes", g.block_bytes},
          {"blocks_per_superpage", g.blocks_per_superpage},
          {"superpages", g.superpages},
          {"active", g.active},
          {"cached", g.cached},
          {"free", g.free},
          {"quarantined", g.quarantined},
          {"claimed", g.claimed},
          {"tail_bytes", g.tail_bytes},
          {"left_behind", g.left_behind},
          {"moved", g.moved}};
}

}  // namespace

Json kv_stats_json(const LoopStats& stats) {
  const engine::CacheAccounting& cache = stats.cache;
  Json groups = Json::array();
  for (const engine::GroupAccounting& group : stats.cache_groups()) groups.push_back(group_json(group));
  return {{"total_bytes", cache.total_bytes},
          {"active_bytes", cache.active_bytes},
          {"cached_bytes", cache.cached_bytes},
          {"free_bytes", cache.free_bytes},
          {"quarantined_bytes", cache.quarantined_bytes},
          {"slack_bytes", cache.slack_bytes},
          {"claimed_bytes", cache.claimed_bytes},
          {"live_rows", cache.live_rows},
          {"arena", {{"superpage_bytes", cache.superpage_bytes}, {"superpages", cache.superpages}, {"free", cache.free_superpages}}},
          {"groups", std::move(groups)}};
}

}  // namespace kvasir::server
