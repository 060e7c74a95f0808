// Attention of one step: each row's query turned, its key and value written to their block, then all it sees attended to
// where it lies. One cache group for each pair of KV heads and reach that the layers have.
//
// Thread rule: one step at a time; the work runs on the pool's threads.
// Invariants: write, then attend: every row reads keys and values in their stored form, its own too. After construction
// nothing is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "model/attention_groups.hpp"
#include "model/attention_plan.hpp"
#include "model/forward.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"
#include "model/workspace.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::model {

// One token of the step: where it stands in its sequence.
struct StepRow {
  std::uint32_t sequence = 0;
  std::uint32_t position = 0;
};

class AttentionPass {
 public:
  // REQUIRES: all outlive the object; ws is sized by widest_sizes(groups, ...) of the same limits.
  AttentionPass(const Model& model, const AttentionGroups& groups, const ForwardLimits& limits, Workspace& ws,
                platform::ThreadPool& pool);

  // Plans the step; its rows and sequences stay valid until it is done.
  // REQUIRES: a page table and a view for each cache group.
  void begin(const StepInput& step, std::span<const StepRow> rows, std::span<const PlannedSequence> planned);

  // Cosines and sines of a row's position, for every rope. Any thread, one a row.
  void set_angles(std::size_t row);

  // ws.qkv of the step's rows to ws.heads, through the cache.
  void run(std::uint32_t layer);

  // Floats from one row of ws.qkv to the next: of the layer with most KV heads.
  std::size_t qkv_stride() const { return q_width() + 2 * std::size_t{most_kv_heads_} * g_.head_dim; }
  std::size_t q_width() const { return std::size_t{g_.heads} * g_.head_dim; }

 private:
  // What one layer's rows need: weights, place, angles.
  struct LayerView {
    const Layer& weights;
    AttentionGroups::Place place;
    std::optional<std::uint32_t> rope;
  };
  LayerView view(std::uint32_t layer) const;

  void store_rows(const LayerView& layer);
  void store_row(const LayerView& layer, std::size_t row);
  void norm_heads(float* heads, std::uint32_t count, const std::vector<float>& weight) const;
  void turn_heads(float* heads, std::uint32_t count, std::optional<std::uint32_t> rope, std::size_t row) const;
  void set_queries(const LayerView& layer);
  void attend(const AttentionPlan& plan);
  void attend_whole(const AttentionItem& item, ThreadScratch& scratch);
  void merge_split(const AttentionItem& item);
  kernels::AttentionTile tile_of(const AttentionItem& item) const;

  const artifact::ModelGeometry& g_;
  const Weights& w_;
  const kernels::KernelSet& k_;
  Workspace& ws_;
  platform::ThreadPool& pool_;
  std::vector<AttentionGroups::Place> places_;
  std::vector<AttentionPlan> plans_;            // one a group
  std::vector<kernels::AttentionQuery> queries_;
  std::uint32_t most_kv_heads_;
  std::size_t max_rows_;
  float epsilon_, scale_;
  const StepInput* step_ = nullptr;
  std::span<const StepRow> rows_;
  std::span<const PlannedSequence> planned_;
};

}  // namespace kvasir::model
