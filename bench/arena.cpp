// How many sequences run at once in the same memory, by how the memory is shared between layers of different windows?
//
// usage: bench_arena [--smoke] [--markdown]
//
//   to the byte  a memory that gives every sequence what it needs wherever there is a byte: nobody can run more
//   arena        what the engine does: groups slice superpages of one arena, windows let blocks go
//   pages, full  pages of one size: the layers of each kind in groups of as many layers as the smallest kind has (of the
//                largest, if that has less than a quarter more), the last group and narrower layers padded; all history kept
//   pages        the same, but windows let pages go
//   split 0.8    a pool a group, a window's holding 0.8 times the tokens of the one without
//   split, told  a pool a group, sized by what this very mix asks for on average
//
// The same requests, first come first served, are all there at the start and admitted by the same rule: the claim is the bound,
// so none is ever put back. All but the first are the cache's own code under another configuration. Lengths: extracts of two public
// traces in turn, conversations (Azure 2023) and papers to be summarised (Vidur's arXiv), again and again.
//
// Means over the steps after whose admissions the head of the queue waits for memory, in parts of the memory:
//   needed       blocks of their own size that the running sequences hold or may still take, as far back as layers look
//   for nothing  what they hold or were promised beyond that: padding, and history that no layer looks at any more
//   unclaimed    all else: tails, holes, pools of the wrong group, and what is too little for the next request
// steps: until all have ended. Not a goal: speed; a step is counted, not timed.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "base/units.hpp"
#include "bench/arena_layouts.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"
#include "store/footprint.hpp"
#include "tests/support/hybrid_geometries.hpp"
#include "trace/reader.hpp"

namespace kvasir::bench {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint32_t kMaxSequences = 512;

struct Outcome {
  double at_once = 0, needed = 0, for_nothing = 0;  // sums over the steps in which the head waits; the last two in parts of the memory
  std::uint64_t steps = 0, waiting = 0;
  void add(std::size_t running, std::uint64_t needed_bytes, std::uint64_t claimed_bytes, std::uint64_t memory) {
    ++waiting;
    at_once += static_cast<double>(running);
    needed += static_cast<double>(needed_bytes) / static_cast<double>(memory);
    for_nothing += static_cast<double>(claimed_bytes - needed_bytes) / static_cast<double>(memory);
  }
  double mean(double sum) const { return waiting == 0 ? 0 : sum / static_cast<double>(waiting); }
};

// What a sequence needs that has `done` rows: what it holds and may still take, as far back as layers look.
std::uint64_t needed_bytes(const store::StorePlan& plan, const Length& length, std::uint32_t done) {
  const std::uint32_t step = done < length.prompt ? std::min(kStepRows, length.prompt - done) : 1;
  std::uint64_t bytes = 0;
  for (const store::GroupPlan& g : plan.groups) {
    const std::uint64_t left_behind = g.reach.first_key(done) / g.layout.block_tokens();
    const std::uint64_t ahead = cache::blocks_for_rows(length.rows(), g.layout.block_tokens()) - left_behind;
    bytes += std::min(ahead, held(g, length.rows(), step)) * g.layout.block_bytes();
  }
  return bytes;
}

struct Running {
  Length length;
  std::uint32_t done = 0;  // rows
  SequenceId id = {};      // where a cache plays
  bool answering() const { return done >= length.prompt; }
};

// Rows of the next step for each of `running`: every answer gets one, prompts share what is left.
class StepRows {
 public:
  explicit StepRows(const std::vector<Running>& running) {
    for (const Running& r : running) left_ -= r.answering() ? 1 : 0;
  }
  std::uint32_t of(const Running& r) {
    if (r.answering()) return r.done < r.length.rows() ? 1 : 0;
    const std::uint32_t rows = std::min(left_, r.length.prompt - r.done);
    left_ -= rows;
    return rows;
  }

 private:
  std::uint32_t left_ = kStepRows;
};

// Nothing but the sum of what is needed.
Outcome play_to_the_byte(const store::StorePlan& plan, std::span<const Length> arrivals) {
  std::vector<Running> running;
  Outcome outcome;
  for (std::size_t next = 0; next < arrivals.size() || !running.empty(); ++outcome.steps) {
    std::uint64_t needed = 0;
    for (const Running& r : running) needed += needed_bytes(plan, r.length, r.done);
    for (; next < arrivals.size() && running.size() < kMaxSequences; ++next) {
      const std::uint64_t more = needed_bytes(plan, arrivals[next], 0);
      if (needed + more > plan.capacity_bytes) {
        outcome.add(running.size(), needed, needed, plan.capacity_bytes);
        break;
      }
      needed += more;
      running.push_back({.length = arrivals[next]});
    }
    StepRows rows(running);
    std::erase_if(running, [&](Running& r) { return (r.done += rows.of(r)) == r.length.rows(); });
  }
  return outcome;
}

// The play of one layout.
class Play {
 public:
  Play(const store::StorePlan& plan, Layout layout, std::span<const Length> arrivals)
      : plan_(plan), layout_(std::move(layout)), arrivals_(arrivals), cache_(make(layout_, arrivals)) {}

  Outcome run() {
    while (next_ < arrivals_.size() || !running_.empty()) {
      admit();
      step();
      ++outcome_.steps;
    }
    return outcome_;
  }

 private:
  static cache::KvCache make(Layout& layout, std::span<const Length> arrivals) {
    layout.config.max_sequences = kMaxSequences;
    layout.config.max_step_rows = kStepRows;
    for (const Length& l : arrivals) layout.config.max_sequence_rows = std::max(layout.config.max_sequence_rows, l.rows());
    return cache::KvCache::create(layout.config).value();
  }

  void admit() {
    if (next_ == arrivals_.size()) return;
    cache_.clear_copies();
    cache_.compact(arrivals_[next_].prompt, arrivals_[next_].answer);
    for (; next_ < arrivals_.size(); ++next_) {
      const Length& head = arrivals_[next_];
      const cache::FitVerdict verdict = cache_.can_admit(head.prompt, head.answer);
      KV_CHECK(!cache::never_fits(verdict.fit), "every request fits alone, however memory is shared");
      if (verdict.fit == cache::Fit::exhausted) return measure();
      if (!verdict.ok()) return;
      running_.push_back({.length = head, .id = cache_.admit(head.prompt, head.answer).value()});
    }
  }

  void measure() {
    std::uint64_t claimed = 0;
    for (std::uint32_t g = 0; g < cache_.groups(); ++g)
      claimed += (cache_.stats(g).pool.active + cache_.stats(g).claimed) * layout_.block_bytes[g];
    std::uint64_t needed = 0;
    for (const Running& r : running_) needed += needed_bytes(plan_, r.length, r.done);
    KV_CHECK(claimed >= needed, "no layout runs on less than is needed");
    outcome_.add(running_.size(), needed, claimed, plan_.capacity_bytes);
  }

  void step() {
    StepRows rows(running_);
    std::erase_if(running_, [&](Running& r) {
      const std::uint32_t n = rows.of(r);
      cache_.reserve_rows(r.id, n);
      if (n > 0) cache_.commit(r.id);
      r.done += n;
      const bool ended = r.done == r.length.rows();
      if (ended) cache_.release(r.id);
      return ended;
    });
  }

  const store::StorePlan& plan_;
  Layout layout_;
  std::span<const Length> arrivals_;
  cache::KvCache cache_;
  std::vector<Running> running_;
  std::size_t next_ = 0;
  Outcome outcome_;
};

void print(bool markdown, std::string_view layout, const Outcome& o, double best) {
  const double at_once = o.mean(o.at_once), needed = o.mean(o.needed), for_nothing = o.mean(o.for_nothing);
  const auto percent = [](double part) { return fmt::format("{:.1f} %", 100 * part); };
  fmt::print(fmt::runtime(markdown ? "| {} | {:.1f} | {} | {} | {} | {} | {} |\n" : "{:<12} {:>8.1f} {:>9} {:>9} {:>12} {:>10} {:>8}\n"),
             layout, at_once, percent(at_once / best), percent(needed), percent(for_nothing), percent(1 - needed - for_nothing), o.steps);
}

void compare(const kvasir::test::NamedGeometry& named, std::uint64_t capacity, std::span<const Length> arrivals, bool markdown) {
  const store::StorePlan plan = store::plan_store(named.geometry, capacity).value();
  fmt::print("\n{}: {}; {}, {} superpages of {}\n", named.name, named.what, format_bytes(capacity), plan.superpages, format_bytes(plan.superpage_bytes));
  fmt::print(fmt::runtime(markdown ? "\n| {} | {} | {} | {} | {} | {} | {} |\n|---|---|---|---|---|---|---|\n" : "{:<12} {:>8} {:>9} {:>9} {:>12} {:>10} {:>8}\n"),
             "memory", "at once", "of best", "needed", "for nothing", "unclaimed", "steps");
  const Outcome ideal = play_to_the_byte(plan, arrivals);
  const double best = ideal.mean(ideal.at_once);
  print(markdown, "to the byte", ideal, best);
  for (const Layout& layout : {arena(plan), pages(named.geometry, plan, false), pages(named.geometry, plan, true),
                               split("split 0.8", plan, shares_by_tokens(plan, 0.8)), split("split, told", plan, shares_by_mix(plan, arrivals))}) {
    const Outcome o = Play(plan, layout, arrivals).run();
    KV_CHECK(layout.name != "arena" || o.for_nothing == 0, "the arena's claims are what sequences need, to the byte");
    print(markdown, layout.name, o, best);
  }
}

// Both traces in turn, `rounds` times.
std::vector<Length> read_arrivals(int rounds) {
  const std::string folder = std::string(KVASIR_SOURCE_DIR) + "/tests/data/trace/";
  const trace::Trace talk = trace::read_trace_file(folder + "azure_conv_first200.csv").value();
  const trace::Trace papers = trace::read_trace_file(folder + "vidur_arxiv_first200.csv").value();
  std::vector<Length> arrivals;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < std::min(talk.requests.size(), papers.requests.size()); ++i)
      for (const trace::TraceRequest& r : {talk.requests[i], papers.requests[i]}) arrivals.push_back({r.input_tokens, r.output_tokens});
  return arrivals;
}

int main_of(std::span<char*> arguments) {
  bool smoke = false, markdown = false;
  for (const std::string_view argument : arguments.subspan(1)) {
    if (argument != "--smoke" && argument != "--markdown") {
      fmt::print(stderr, "bench_arena: {} is not an option\nusage: bench_arena [--smoke] [--markdown]\n", argument);
      return 2;
    }
    (argument == "--smoke" ? smoke : markdown) = true;
  }
  const std::vector<Length> arrivals = read_arrivals(smoke ? 1 : 5);
  fmt::print("{} requests; steps of {} rows, blocks of 32 tokens, f16\n", arrivals.size(), kStepRows);
  compare(kvasir::test::gemma_3_270m(), kGiB / 2, arrivals, markdown);
  compare(kvasir::test::gemma_3_27b(), 32 * kGiB, arrivals, markdown);
  compare(kvasir::test::gpt_oss(), 8 * kGiB, arrivals, markdown);
  compare(kvasir::test::three_groups(), 16 * kGiB, arrivals, markdown);
  return 0;
}

}  // namespace
}  // namespace kvasir::bench

int main(int argc, char** argv) { return kvasir::bench::main_of({argv, static_cast<std::size_t>(argc)}); }
