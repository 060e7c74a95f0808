// One planned step as the forward pass takes it: which tokens at which positions, and where their blocks are.
// Thread rule: one owner. Allocates at construction only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/page_table.hpp"
#include "core/core.hpp"
#include "model/forward.hpp"
#include "store/kv_store.hpp"

namespace kvasir::engine {

class StepBatch {
 public:
  StepBatch(const core::Core& core, const store::KvStore& store);

  // Heap bytes of its own lists; those of the page tables are cache::page_table_bytes.
  static std::uint64_t list_bytes(std::size_t groups, std::uint32_t max_sequences) {
    return max_sequences * sizeof(model::StepSequence) +
           groups * (sizeof(cache::PageTable) + sizeof(format::PageTableView) + sizeof(format::PagedKvView));
  }

  // Chunk i of the core's plan becomes sequence i. logits_from(request): the first prompt position whose logits are
  // wanted besides those that are sampled from. The views hold until the next build() or change of the core.
  // REQUIRES: a step in flight.
  template <class LogitsFrom>
  void build(const core::Core& core, LogitsFrom logits_from) {
    clear();
    for (const sched::Chunk& chunk : core.current_plan().chunks) {
      const core::Request& request = *core.find(chunk.request);
      const std::uint32_t end = chunk.first_position + chunk.token_count;
      const std::uint32_t from = std::max(logits_from(chunk.request), chunk.first_position);
      const bool of_prompt = end <= request.prompt_tokens && request.dropped == 0;   // not what is computed again
      const std::uint32_t scored = of_prompt && from < end ? end - from : 0;
      add(core.cache(), request, chunk, std::max(scored, chunk.wants_logits ? 1u : 0u));
    }
    finish();
  }

  model::StepInput input() const { return {sequences_, views_, kv_}; }
  std::span<const model::StepSequence> sequences() const { return sequences_; }

 private:
  void clear();
  void add(const cache::KvCache& cache, const core::Request& request, const sched::Chunk& chunk,
           std::uint32_t logits_rows);
  void finish();

  std::vector<model::StepSequence> sequences_;
  std::vector<cache::PageTable> tables_;          // one a group
  std::vector<format::PageTableView> views_;
  std::vector<format::PagedKvView> kv_;
};

}  // namespace kvasir::engine
