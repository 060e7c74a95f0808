#include "engine/step_batch.hpp"

namespace kvasir::engine {

StepBatch::StepBatch(const core::Core& core, const store::KvStore& store) {
  const cache::KvCache& cache = core.cache();
  sequences_.reserve(cache.max_sequences());
  views_.resize(cache.groups());
  tables_.reserve(cache.groups());
  kv_.reserve(cache.groups());
  for (std::uint32_t group = 0; group < cache.groups(); ++group) {
    tables_.emplace_back(cache.max_sequences(), cache.table_capacity(group));
    kv_.push_back(store.view(group));
  }
}

void StepBatch::clear() {
  sequences_.clear();
  for (cache::PageTable& table : tables_) table.clear();
}

void StepBatch::add(const cache::KvCache& cache, const core::Request& request, const sched::Chunk& chunk,
                    std::uint32_t logits_rows) {
  const std::span<const TokenId> tokens(request.tokens);
  sequences_.push_back({tokens.subspan(chunk.first_position, chunk.token_count), chunk.first_position, logits_rows});
  for (std::uint32_t group = 0; group < tables_.size(); ++group) {
    tables_[group].add(cache.table(request.sequence, group));
  }
}

void StepBatch::finish() {
  for (std::uint32_t group = 0; group < tables_.size(); ++group) views_[group] = tables_[group].view();
}

}  // namespace kvasir::engine
