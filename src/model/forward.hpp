// The forward pass of one step: a mixed batch of prefill chunks and decode rows through all layers, keys and values
// written to their blocks first, then attended to where they lie.
//
// Thread rule: one step at a time; the pass itself runs on the pool's threads.
// Invariants: the logits of a row depend on the tokens before it and on nothing else (not on the other rows, the chunk
// boundaries, threads, instruction class, block size or physical blocks): the same bits.
// After construction run() allocates nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.hpp"
#include "format/block_layout.hpp"
#include "model/model.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::model {

// What the workspace is sized for. A step beyond them is a programmer error (checked).
struct ForwardLimits {
  std::uint32_t rows = 512;          // tokens of one step, all sequences together (--max-num-batched-tokens)
  std::uint32_t sequences = 32;      // sequences of one step (--max-num-seqs)
  std::uint32_t logits_rows = 32;    // rows of one step whose logits are held at a time
  std::uint32_t context = 2048;      // highest position + 1 (--max-model-len)
};

// One sequence's part of a step: `tokens.size()` new tokens at positions first_position, first_position + 1, ...
// Its keys up to first_position - 1 are in the cache already; its blocks for all of them are in the page tables.
struct StepSequence {
  std::span<const TokenId> tokens;
  std::uint32_t first_position = 0;
  std::uint32_t logits_rows = 0;     // logits are wanted for the last so many of these tokens
};

// Sequence s of `sequences` is row s of every group's page table.
struct StepInput {
  std::span<const StepSequence> sequences;
  std::span<const format::PageTableView> tables;   // one a cache group
  std::span<const format::PagedKvView> kv;         // one a cache group
};

class Forward {
 public:
  // REQUIRES: pool outlives the object. The geometry of the cache must be model->geometry().kv_geometry(...).
  Forward(std::shared_ptr<const Model> model, const ForwardLimits& limits, platform::ThreadPool& pool);
  ~Forward();

  // Runs the step, and the head for the first rows whose logits are wanted, as many as are held at a time.
  // REQUIRES: within limits; token ids within the vocabulary; blocks present for every row.
  void run(const StepInput& step);

  // Rows of the last run whose logits are wanted, in the order of the sequences and of their tokens.
  std::uint32_t logits_rows() const;
  // Whether the logits of such a row are held now.
  bool holds(std::uint32_t row) const;
  // Runs the head again, for the rows from `first` on: as many as are held at a time. So a prompt can be scored at every
  // position without room for the logits of all of them. REQUIRES: first < logits_rows().
  void hold_from(std::uint32_t first);

  // Logits of a row: [vocabulary] floats, until another is held or run. REQUIRES: holds(row).
  std::span<const float> logits(std::uint32_t row) const;
  // The same rows after the final norm, before the head: [width] floats.
  std::span<const float> hidden(std::uint32_t row) const;

  // Bytes of workspace that limits ask for; what the constructor allocates.
  static std::uint64_t workspace_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits, std::size_t threads);
  // The part of them that holds logits.
  static std::uint64_t logits_bytes(const artifact::ModelGeometry& geometry, const ForwardLimits& limits);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::model
