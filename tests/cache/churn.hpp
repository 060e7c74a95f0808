// A shared arena near its limit, step after step, as a core drives it: the queue never ends; prompts come in chunks, answers
// row by row; sequences fork, and some are cancelled. The mix of lengths changes, so that memory has to move between groups.
//
// What is waste? In bytes, whenever the request at the head of the queue waits for memory. A block that a sequence holds or was
// promised is used, partly filled or not (that rounding is the block size's); all else in the arena is unclaimed:
//
//   unclaimed  = superpages * superpage_bytes - sum over groups of (active + claimed) * block_bytes
//   wanted     = the head's blocks in every group, in bytes
//   withheld   = unclaimed if wanted <= unclaimed, else 0: an arena without superpages, cut to the byte, would have admitted
//                the head. It waits for where blocks lie, so all that lies unclaimed counts.
//   unmovable  = sum over groups of ceil((active + claimed) / blocks_per_superpage) * superpage_bytes - (active + claimed) *
//                block_bytes: tails, and what is left of each group's last superpage if its blocks lay as close as they can.
//                No moving of blocks gives it to another group.
//   waste      = the larger of withheld and unmovable
//
// Where wanted > unclaimed the head waits for others to end, and would in any arena. What then lies in the holes of superpages
// is told as `holes`, though it costs nothing before a head comes that it could serve: unclaimed bytes outside free superpages.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.hpp"
#include "cache/kv_cache.hpp"
#include "store/footprint.hpp"

namespace kvasir::cache::test {

struct ChurnSetting {
  format::KvGeometry geometry;
  std::uint64_t capacity_bytes = 0;
  std::uint32_t longest_prompt = 1, longest_answer = 1;  // tokens
  std::uint32_t step_rows = 512, max_sequences = 512;
};

struct ChurnReport {
  std::uint64_t steps = 0, waiting = 0;  // steps, and those after whose admissions the head waited for memory
  std::uint64_t delayed = 0;             // of these, with something withheld
  std::uint64_t unfinished = 0;          // of these, where moving more blocks would have helped
  // Of the waiting ones, share of the arena: means and the largest.
  double used = 0, waste = 0, withheld = 0, unmovable = 0, holes = 0, most_waste = 0;
  double sequences = 0;                  // running, mean of all steps
  std::uint64_t admitted = 0, forked = 0, cancelled = 0, moved = 0, left_behind = 0;
  std::uint64_t busiest_step = 0;        // blocks moved in one step, most
};

class Churn {
 public:
  Churn(const ChurnSetting& setting, std::uint64_t seed);
  void step();
  ChurnReport report() const;  // so far
  const KvCache& cache() const { return cache_; }
  const store::StorePlan& plan() const { return plan_; }

 private:
  struct Running {
    SequenceId id;
    std::uint32_t prompt;
  };
  struct Length {
    std::uint32_t prompt, answer;
  };

  Length draw();
  std::uint32_t log_uniform(double low, double high);
  void cancel_one();
  void fork_one();
  void admit_and_measure();
  void measure();
  void run_rows();

  ChurnSetting setting_;
  store::StorePlan plan_;
  KvCache cache_;
  PhiloxSequence random_;
  std::vector<Running> running_;
  Length head_{};
  double long_share_ = 0.5;
  ChurnReport sum_;
};

}  // namespace kvasir::cache::test
