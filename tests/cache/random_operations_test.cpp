// Random operations on the cache against a naive twin that keeps each sequence's rows as a plain list. Memory is played with
// numbers in cells: a row fills its stripe of a block, a block its slice of a superpage, so groups that share an arena write
// to the same cells. Every row that a later one can reach must read back through the tables what was written, whatever was
// shared, copied, moved, truncated, let go and recycled meanwhile: aliased, lost or overlapping blocks cannot pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "cache/footprint.hpp"
#include "cache/kv_cache.hpp"

namespace kvasir::cache {
namespace {

constexpr std::size_t kCells = 240;   // of a superpage: whole stripes for every block size played here

class PlayedMemory {
 public:
  PlayedMemory(KvCacheConfig config, std::uint64_t seed)
      : config_(shuffled(std::move(config), seed)), cache_(KvCache::create(config_).value()), random_(seed) {
    std::size_t cells = 0;
    for (const GroupConfig& group : config_.groups) {
      if (group.blocks_per_superpage == 0) {
        first_cell_.push_back(cells);
        cells += std::size_t{group.blocks} * group.block_tokens;
      }
    }
    arena_ = cells;
    for (const GroupConfig& group : config_.groups)
      if (group.blocks_per_superpage > 0) cells = std::max(cells, arena_ + group.blocks / group.blocks_per_superpage * kCells);
    cells_.resize(cells);
  }

  void step() {
    switch (random_.below(17)) {
      case 13:
        begin_beams();
        break;
      case 14:
      case 15:
        step_beams();
        break;
      case 16:
        if (random_.below(3) == 0) end_beams();
        break;
      case 12:
        admit_sharing();
        break;
      case 0:
      case 1:
        admit();
        break;
      case 2:
        fork();
        break;
      case 3:
        release();
        break;
      case 4:
        truncate();
        break;
      default:
        grow();
        break;
    }
    if (++steps_ % 8 == 0) cache_.check_invariants();
    verify_one();
  }

  void finish() {
    cache_.check_invariants();
    verify_all();
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) left_behind += cache_.stats(g).left_behind, moved += cache_.stats(g).moved;
    while (!beams_.empty()) end_beams();
    while (!twins_.empty()) release();
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
      const GroupStats stats = cache_.stats(g);
      EXPECT_EQ(stats.pool.free, stats.pool.total);
      EXPECT_EQ(stats.claimed, 0u);
    }
    if (config_.groups[0].blocks_per_superpage > 0) {
      EXPECT_EQ(cache_.free_superpages(), config_.groups[0].blocks / config_.groups[0].blocks_per_superpage);
    }
  }
  std::uint64_t admitted = 0, refused = 0, forked = 0, shared = 0, beamed = 0, copied = 0, left_behind = 0, moved = 0;

 private:
  struct Twin {
    std::vector<std::uint64_t> rows;
    std::uint64_t prompt = 0, bound = 0;
    std::uint32_t kept = 0;  // truncation below is not offered: shared, or let go by a window
  };
  using Any = std::map<SequenceId, Twin>::iterator;

  static KvCacheConfig shuffled(KvCacheConfig config, std::uint64_t seed) {
    if (seed % 2 == 1) config.allocation_order = seed;
    return config;
  }

  Any any() {
    auto at = twins_.begin();
    std::advance(at, random_.below(static_cast<std::uint32_t>(twins_.size())));
    return at;
  }

  void admit() {
    const auto longest = static_cast<std::uint32_t>(random_.below(3) == 0 ? config_.max_sequence_rows : 10);
    const std::uint64_t prompt = 1 + random_.below(longest), max_new = random_.below(3) == 0 ? random_.below(20) : 0;
    cache_.compact(prompt, max_new);
    make_copies();
    const FitVerdict verdict = cache_.can_admit(prompt, max_new);
    const Result<SequenceId> sequence = cache_.admit(prompt, max_new);
    ASSERT_EQ(sequence.ok(), verdict.ok());
    sequence.ok() ? ++admitted : ++refused;
    if (sequence.ok()) twins_[*sequence] = {{}, prompt, rows_bound(prompt, max_new), 0};
  }

  // Sequences that go on from each other: all of them step together.
  struct Beams {
    std::vector<SequenceId> members;
    std::vector<Twin> twins;   // of those that have begun
    ForkReserve reserve;
  };

  void begin_beams() {
    const std::uint64_t prompt = 1 + random_.below(30), max_new = 1 + random_.below(25);
    const std::uint32_t width = 2 + random_.below(4);
    Beams beams;
    const Result<SequenceId> first = cache_.admit_forking(prompt, max_new, width, beams.reserve);
    if (!first.ok()) return;
    cache_.check_invariants();
    beams.members.resize(width);
    beams.members[0] = *first;
    beams.twins.push_back({{}, prompt, rows_bound(prompt, max_new), 0});
    while (beams.twins[0].rows.size() < prompt)
      extend(*first, beams.twins[0], std::min<std::uint64_t>(config_.max_step_rows, prompt - beams.twins[0].rows.size()));
    reorder(beams);
    beams_.push_back(std::move(beams));
  }

  void extend(SequenceId sequence, Twin& twin, std::uint64_t n) {
    cache_.reserve_rows(sequence, static_cast<std::uint32_t>(n));
    make_copies();
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::uint32_t g = 0; g < cache_.groups(); ++g) std::ranges::fill(row(sequence, g, twin.rows.size()), next_value_);
      twin.rows.push_back(next_value_++);
    }
    cache_.commit(sequence);
  }

  void reorder(Beams& beams) {
    std::vector<std::uint32_t> parents;
    for (std::size_t m = 0; m < beams.members.size(); ++m) parents.push_back(random_.below(static_cast<std::uint32_t>(beams.twins.size())));
    cache_.fork_among(beams.members, parents, beams.reserve);
    std::vector<Twin> next;
    for (const std::uint32_t parent : parents) next.push_back(beams.twins[parent]);
    beams.twins = std::move(next);
    cache_.check_invariants();
    for (std::size_t m = 0; m < beams.members.size(); ++m) verify(beams.members[m], beams.twins[m]);
    ++beamed;
  }

  void step_beams() {
    if (beams_.empty()) return;
    Beams& beams = beams_[random_.below(static_cast<std::uint32_t>(beams_.size()))];
    if (beams.twins[0].rows.size() == beams.twins[0].bound) return;
    for (std::size_t m = 0; m < beams.members.size(); ++m) {
      extend(beams.members[m], beams.twins[m], 1);
      verify(beams.members[m], beams.twins[m]);
    }
    reorder(beams);
  }

  void end_beams() {
    if (beams_.empty()) return;
    for (const SequenceId member : beams_.back().members) cache_.release(member);
    cache_.give_back(beams_.back().reserve);
    beams_.pop_back();
  }

  // Begins with rows of another, as a second answer to one prompt does.
  void admit_sharing() {
    if (twins_.empty()) return;
    const Any source = any();
    const Twin& twin = source->second;
    if (twin.rows.empty()) return;
    const std::uint32_t rows = 1 + random_.below(static_cast<std::uint32_t>(twin.rows.size()));
    if (!cache_.can_share(source->first, rows)) return;
    const std::uint64_t prompt = rows + 1 + random_.below(3), max_new = random_.below(10);
    const Result<SequenceId> sequence = cache_.admit_sharing(source->first, rows, prompt, max_new);
    if (!sequence.ok()) return;
    make_copies();
    ++shared;
    source->second.kept = std::max(source->second.kept, rows);
    Twin begun{{twin.rows.begin(), twin.rows.begin() + rows}, prompt, rows_bound(prompt, max_new), rows};
    twins_[*sequence] = std::move(begun);
    verify(twins_.find(*sequence));
  }

  void fork() {
    if (twins_.empty()) return;
    const Any parent = any();
    const std::uint64_t bound = std::max<std::uint64_t>(parent->second.rows.size() + random_.below(20), 1);
    const Result<SequenceId> child = cache_.fork(parent->first, bound);
    if (!child.ok()) return;
    ++forked;
    parent->second.kept = static_cast<std::uint32_t>(parent->second.rows.size());
    twins_[*child] = parent->second;
    twins_[*child].bound = bound;
  }

  // Some rows; then the step is committed, or given up.
  void grow() {
    if (twins_.empty()) return;
    const Any at = any();
    Twin& twin = at->second;
    const std::uint64_t done = twin.rows.size(), most = done < twin.prompt ? std::min<std::uint64_t>(config_.max_step_rows, twin.prompt - done) : 1;
    const auto n = static_cast<std::uint32_t>(std::min({twin.bound - done, most, std::uint64_t{random_.below(12)}}));
    cache_.reserve_rows(at->first, n);
    make_copies();
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t g = 0; g < cache_.groups(); ++g) std::ranges::fill(row(at->first, g, twin.rows.size()), next_value_);
      twin.rows.push_back(next_value_++);
    }
    verify(at);
    if (random_.below(8) == 0) {
      cache_.truncate(at->first, static_cast<std::uint32_t>(done));
      twin.rows.resize(done);
      return;
    }
    cache_.commit(at->first);
    if (windowed()) twin.kept = static_cast<std::uint32_t>(twin.rows.size());
  }

  void truncate() {
    if (twins_.empty()) return;
    const Any at = any();
    std::vector<std::uint64_t>& rows = at->second.rows;
    std::uint32_t lowest = at->second.kept;
    for (const GroupConfig& group : config_.groups)  // whole blocks beyond what was ever shared
      lowest = std::max(lowest, static_cast<std::uint32_t>(blocks_for_rows(at->second.kept, group.block_tokens)) * group.block_tokens);
    if (rows.size() <= lowest) return;
    const std::uint32_t keep = lowest + random_.below(static_cast<std::uint32_t>(rows.size()) - lowest);
    cache_.truncate(at->first, keep);
    rows.resize(keep);
  }

  void release() {
    if (twins_.empty()) return;
    const Any at = any();
    cache_.release(at->first);
    twins_.erase(at);
  }

  bool windowed() const {
    return std::ranges::any_of(config_.groups, [](const GroupConfig& g) { return g.reach.window > 0; });
  }

  std::span<std::uint64_t> block_cells(std::uint32_t g, BlockId block) {
    const GroupConfig& group = config_.groups[g];
    const auto b = static_cast<std::uint32_t>(block);
    if (group.blocks_per_superpage == 0) return {&cells_[first_cell_[g] + std::size_t{b} * group.block_tokens], group.block_tokens};
    const std::size_t slice = kCells / group.blocks_per_superpage;
    return {&cells_[arena_ + b / group.blocks_per_superpage * kCells + b % group.blocks_per_superpage * slice], slice};
  }

  std::span<std::uint64_t> row(SequenceId sequence, std::uint32_t g, std::size_t position) {
    const BlockTable& table = cache_.table(sequence, g);
    const std::span<std::uint64_t> cells = block_cells(g, table.ids()[position / table.block_tokens() - table.dropped()]);
    const std::size_t stripe = cells.size() / table.block_tokens();
    return cells.subspan(position % table.block_tokens() * stripe, stripe);
  }

  void make_copies() {
    for (const CopyBlock& copy : cache_.copies()) {
      ++copied;
      std::ranges::copy(block_cells(copy.group, copy.from), block_cells(copy.group, copy.to).begin());
    }
    cache_.clear_copies();
  }

  void verify(Any at) { verify(at->first, at->second); }
  void verify(SequenceId sequence, const Twin& twin) {
    ASSERT_EQ(cache_.rows(sequence), twin.rows.size());
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
      const auto rows = static_cast<std::uint32_t>(twin.rows.size());
      for (std::size_t i = config_.groups[g].reach.first_key(rows); i < rows; ++i)
        for (const std::uint64_t cell : row(sequence, g, i)) ASSERT_EQ(cell, twin.rows[i]) << "group " << g << " row " << i;
    }
  }
  void verify_one() {
    if (!twins_.empty()) verify(any());
  }
  void verify_all() {
    for (Any at = twins_.begin(); at != twins_.end(); ++at) verify(at);
  }

  KvCacheConfig config_;
  KvCache cache_;
  std::vector<std::size_t> first_cell_;  // of groups with blocks of their own
  std::size_t arena_ = 0;                // first cell of the shared superpages
  std::vector<std::uint64_t> cells_;
  std::map<SequenceId, Twin> twins_;
  std::vector<Beams> beams_;
  std::uint64_t next_value_ = 1, steps_ = 0;
  PhiloxSequence random_;
};

struct Totals {
  std::uint64_t admitted = 0, refused = 0, forked = 0, shared = 0, beamed = 0, copied = 0, left_behind = 0, moved = 0;
};

Totals play(const KvCacheConfig& config, std::uint64_t seeds, int steps) {
  Totals sum;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    PlayedMemory memory(config, seed);
    for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) memory.step();
    if (::testing::Test::HasFatalFailure()) return sum;
    memory.finish();
    sum.admitted += memory.admitted, sum.refused += memory.refused, sum.forked += memory.forked, sum.shared += memory.shared, sum.beamed += memory.beamed, sum.copied += memory.copied;
    sum.left_behind += memory.left_behind, sum.moved += memory.moved;
  }
  return sum;
}

TEST(RandomOperations, OfGroupsWithBlocksOfTheirOwn) {
  const Totals t = play({{{4, 30, 1}, {8, 14, 0}}, 6, 48, std::nullopt, 12}, 12, 400);
  EXPECT_GT(std::min({t.admitted, t.refused, t.forked, t.shared, t.beamed, t.copied}), 20u) << "the random walk visits every kind of event";
}

TEST(RandomOperations, OfOneWindow) {
  const Totals t = play({{{4, 14, 0, {10}}}, 6, 100, std::nullopt, 6}, 12, 1500);
  EXPECT_GT(std::min({t.admitted, t.refused, t.forked, t.shared, t.beamed, t.copied, t.left_behind}), 20u);
}

TEST(RandomOperations, OfFullWindowAndChunkInOneArena) {
  const KvCacheConfig config{{{4, 160, 1, {}, 10}, {8, 16, 0, {12}, 1}, {4, 80, 0, {16, true}, 5}}, 20, 60, std::nullopt, 9};
  const Totals t = play(config, 40, 4000);
  EXPECT_GT(std::min({t.admitted, t.refused, t.forked, t.shared, t.beamed, t.copied, t.left_behind}), 20u);
  EXPECT_GT(t.moved, 5u) << "holes that stand in another group's way are rare";
}

}  // namespace
}  // namespace kvasir::cache
