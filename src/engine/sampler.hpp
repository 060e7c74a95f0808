// From logits to tokens.
//
// Thread rule: one caller at a time; rows are spread over the pool's threads. Allocates at construction only.
// Invariants: a row's token depends on its logits, its parameters and its position alone, not on the other rows, the
// threads or the instruction class.
//
//   rules    what SamplingParams lists before the temperature (engine/logit_rules.hpp), on a copy of the row.
//   greedy   the highest logit; of equals the lowest id.
//   drawn    candidates in (logit descending, id ascending) order, each weighing exp((logit - max) / temperature) as a
//            float; the cuts of SamplingParams keep a prefix of them; u in [0, 1) comes from Philox keyed by (seed,
//            choice, position); the token is the first whose running sum of weights exceeds u times the kept sum.
//
// A NaN logit is never chosen. Log probabilities are of the raw logits, before rules, temperature and cuts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "engine/logit_rules.hpp"
#include "engine/request.hpp"
#include "engine/sampling_params.hpp"
#include "platform/isa.hpp"
#include "platform/thread_pool.hpp"

namespace kvasir::engine {

// One row to sample, and what came of it.
struct SampleRow {
  std::span<const float> logits;            // [vocabulary]
  const SamplingParams* params = nullptr;
  const LogitRules* rules = nullptr;        // null: none
  TokenId given = -1;                       // >= 0: nothing is sampled, this token's log probability and rank alone
  std::uint32_t position = 0;               // of the token that is sampled, in its sequence
  TokenId token = -1;
  float logprob = 0;                        // where params->logprobs >= 0
  std::uint32_t rank = 0;                   // of a given token, 1 = likeliest
  std::uint32_t top_count = 0;
  std::array<TokenLogprob, kMaxTopLogprobs> top;   // [top_count], likeliest first

  std::span<const TokenLogprob> top_logprobs() const { return {top.data(), top_count}; }
};

class Sampler {
 public:
  Sampler(std::uint32_t vocabulary, std::size_t threads, platform::Isa isa);
  ~Sampler();

  // REQUIRES: pool.threads() <= threads; every row as long as the vocabulary.
  void sample(std::span<SampleRow> rows, platform::ThreadPool& pool);

  // Bytes that the constructor allocates.
  static std::uint64_t bytes(std::uint32_t vocabulary, std::size_t threads);

 private:
  struct Scratch;   // of one thread
  void sample_row(SampleRow& row, Scratch& scratch) const;
  TokenId choose(const SampleRow& row, Scratch& scratch) const;

  std::uint32_t vocabulary_;
  platform::Isa isa_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

}  // namespace kvasir::engine
