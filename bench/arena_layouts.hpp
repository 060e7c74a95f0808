// Ways to share one memory between the layers of a model: configurations of the cache. Part of arena.cpp, which says what each is.
// Thread rule: pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"
#include "store/footprint.hpp"

namespace kvasir::bench {

inline constexpr std::uint32_t kStepRows = 512;

struct Length {
  std::uint32_t prompt, answer;
  std::uint64_t rows() const { return cache::rows_bound(prompt, answer); }
};

// One way to share the memory: a configuration of the cache, and what its blocks take. The rest of `capacity` is lost.
struct Layout {
  std::string_view name;
  cache::KvCacheConfig config;
  std::vector<std::uint64_t> block_bytes;  // of each group of the configuration
};

inline std::vector<std::uint64_t> true_block_bytes(const store::StorePlan& plan) {
  std::vector<std::uint64_t> bytes;
  for (const store::GroupPlan& g : plan.groups) bytes.push_back(g.layout.block_bytes());
  return bytes;
}

inline Layout arena(const store::StorePlan& plan) {
  Layout layout{"arena", {}, true_block_bytes(plan)};
  for (const store::GroupPlan& g : plan.groups)
    layout.config.groups.push_back({.block_tokens = g.layout.block_tokens(),
                                    .blocks = g.blocks,
                                    .reach = g.reach,
                                    .blocks_per_superpage = g.blocks_per_superpage});
  return layout;
}

// Layers of a page: as the smallest kind has, or the largest where that saves padding.
inline std::size_t page_layers(const format::KvGeometry& geometry) {
  std::size_t least = ~std::size_t{0}, most = 0;
  for (const format::CacheGroup& g : geometry.groups) least = std::min(least, g.layers.size()), most = std::max(most, g.layers.size());
  return 4 * most < 5 * least ? most : least;
}

inline Layout pages(const format::KvGeometry& geometry, const store::StorePlan& plan, bool windows_let_go) {
  const std::size_t layers = page_layers(geometry);
  std::uint64_t page_bytes = 0;
  for (const store::GroupPlan& g : plan.groups) page_bytes = std::max<std::uint64_t>(page_bytes, layers * g.layout.layer_bytes());
  Layout layout{windows_let_go ? "pages" : "pages, full", {}, {}};
  for (const store::GroupPlan& g : plan.groups) {
    for (std::uint64_t i = 0; i < ceil_div(g.layout.layers(), layers); ++i) {
      layout.config.groups.push_back({.block_tokens = g.layout.block_tokens(),
                                      .blocks = static_cast<std::uint32_t>(plan.capacity_bytes / page_bytes),
                                      .reach = windows_let_go ? g.reach : format::Reach{},
                                      .blocks_per_superpage = 1});
      layout.block_bytes.push_back(page_bytes);
    }
  }
  return layout;
}

// A pool a group, in proportion to `shares` of the memory.
inline Layout split(std::string_view name, const store::StorePlan& plan, const std::vector<double>& shares) {
  Layout layout{name, {}, true_block_bytes(plan)};
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (std::size_t g = 0; g < shares.size(); ++g) {
    const double bytes = static_cast<double>(plan.capacity_bytes) * shares[g] / sum;
    layout.config.groups.push_back({.block_tokens = plan.groups[g].layout.block_tokens(),
                                    .blocks = static_cast<std::uint32_t>(bytes / static_cast<double>(layout.block_bytes[g])),
                                    .reach = plan.groups[g].reach});
  }
  return layout;
}

inline std::vector<double> shares_by_tokens(const store::StorePlan& plan, double of_windows) {
  std::vector<double> shares;
  for (const store::GroupPlan& g : plan.groups)
    shares.push_back((g.reach.window > 0 ? of_windows : 1.0) * static_cast<double>(g.layout.bytes_per_token()));
  return shares;
}

inline std::uint64_t held(const store::GroupPlan& g, std::uint64_t rows, std::uint64_t step) {
  return cache::blocks_held(rows, g.reach, step, g.layout.block_tokens());
}

inline std::vector<double> shares_by_mix(const store::StorePlan& plan, std::span<const Length> mix) {
  std::vector<double> shares;
  for (const store::GroupPlan& g : plan.groups) {
    double bytes = 0;
    for (const Length& l : mix)
      bytes += static_cast<double>(held(g, l.rows(), std::min(kStepRows, l.prompt)) * g.layout.block_bytes()) * (l.prompt / kStepRows + l.answer);
    shares.push_back(bytes);
  }
  return shares;
}

}  // namespace kvasir::bench
