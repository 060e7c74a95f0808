// Which cache group a layer's keys lie in, and what attention over each group needs: from the geometry alone, in the order of
// ModelGeometry::kv_geometry().
// Thread rule: pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "artifact/geometry.hpp"
#include "model/attention_plan.hpp"

namespace kvasir::model {

struct AttentionGroups {
  struct Place {
    std::uint32_t group = 0;
    std::uint32_t slot = 0;    // the layer's number in its group
  };
  std::vector<AttentionShape> shapes;   // one a group
  std::vector<Place> places;            // one a layer; meaningless for a layer without KV heads
};
AttentionGroups attention_groups(const artifact::ModelGeometry& geometry);

// Room that suffices for each of the groups' plans.
AttentionSizes widest_sizes(const AttentionGroups& groups, std::uint32_t max_rows, std::uint32_t max_sequences,
                            std::uint32_t max_context, std::size_t threads);

// Of the layer with most KV heads.
std::uint32_t most_kv_heads(const artifact::ModelGeometry& geometry);

}  // namespace kvasir::model
