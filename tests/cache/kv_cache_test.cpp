#include "cache/kv_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "cache/footprint.hpp"
#include "tests/support/admission_cases.hpp"

namespace kvasir::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

KvCache make(std::vector<GroupConfig> groups, std::uint32_t max_sequences, std::uint64_t context,
             std::optional<std::uint64_t> order = std::nullopt) {
  return KvCache::create({std::move(groups), max_sequences, context, order}).value();
}

TEST(KvCache, ConfigurationErrorsNameTheValue) {
  const auto message = [](const KvCacheConfig& config) { return KvCache::create(config).error().message; };
  EXPECT_THAT(message({{}, 1, 10, {}}), HasSubstr("0 cache groups"));
  EXPECT_THAT(message({std::vector<GroupConfig>(9, {16, 4, 0}), 1, 10, {}}), HasSubstr("9 cache groups"));
  EXPECT_THAT(message({{{16, 4, 0}}, 0, 10, {}}), HasSubstr("max_sequences = 0"));
  EXPECT_THAT(message({{{16, 4, 0}}, 1, 0, {}}), HasSubstr("max_sequence_rows = 0"));
  EXPECT_THAT(message({{{16, 4, 0}}, 1, 1ull << 31, {}}), HasSubstr("max_sequence_rows = 2147483648"));
  EXPECT_THAT(message({{{0, 4, 0}}, 1, 10, {}}), HasSubstr("block_tokens = 0"));
  EXPECT_THAT(message({{{16, 0, 0}}, 1, 10, {}}), HasSubstr("blocks = 0"));
  EXPECT_THAT(message({{{16, 4, 4}}, 1, 10, {}}), HasSubstr("4 of 4 blocks are reserved"));
}

TEST(KvCache, AdmissionIsExactAtTheLimit) {  // known fault B19: pool 4 x 16
  for (const test::AdmissionCase& c : test::kFourBlocksOfSixteen) {
    KvCache cache = make({{16, 4, 0}}, 2, 1000);
    Result<SequenceId> sequence = cache.admit(c.prompt, c.max_new);
    ASSERT_EQ(sequence.ok(), c.fits) << c.prompt << "+" << c.max_new;
    if (!c.fits) {
      EXPECT_EQ(sequence.error().code, ErrorCode::does_not_fit);
      EXPECT_THAT(sequence.error().message, AllOf(HasSubstr("5 KV blocks"), HasSubstr("4 are usable")));
      EXPECT_EQ(cache.sequences(), 0u);
      continue;
    }
    // It can use all of its bound, one row at a time after the prompt, and not one row more.
    cache.reserve_rows(*sequence, static_cast<std::uint32_t>(c.prompt));
    for (std::uint64_t i = 1; i < c.max_new; ++i) cache.reserve_rows(*sequence, 1);
    cache.check_invariants();
    EXPECT_EQ(cache.rows(*sequence), rows_bound(c.prompt, c.max_new));
    EXPECT_EQ(cache.stats(0).claimed, 0u);
    EXPECT_DEATH(cache.reserve_rows(*sequence, 1), "within its bound");
    cache.release(*sequence);
    EXPECT_EQ(cache.stats(0).pool.free, 4u);
  }
}

TEST(KvCache, ReservedBlocksAreNotUsable) {  // known fault B22: pool 8 x 16, one block reserved, model limit 256
  KvCache cache = make({{16, 8, 1}}, 4, 256);
  for (const std::uint64_t prompt : {113u, 130u}) {
    const Result<SequenceId> refused = cache.admit(prompt, 0);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::does_not_fit);
    EXPECT_THAT(refused.error().message, HasSubstr("7 are usable"));
  }
  EXPECT_TRUE(cache.admit(112, 0).ok());
}

TEST(KvCache, ExhaustionIsToldBeforeAnythingChanges) {
  KvCache cache = make({{16, 4, 0}, {4, 100, 0}}, 4, 1000);
  const SequenceId first = cache.admit(40, 0).value();
  EXPECT_EQ(cache.can_admit(17, 0), (FitVerdict{Fit::exhausted, 0, 2, 1}));
  const Result<SequenceId> second = cache.admit(17, 0);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::exhausted);
  EXPECT_EQ(cache.stats(0).claimed, 3u);
  EXPECT_EQ(cache.stats(1).claimed, 10u);
  cache.check_invariants();
  cache.release(first);  // nothing was ever stored: the whole claim comes back
  EXPECT_TRUE(cache.admit(17, 0).ok());
}

TEST(KvCache, HugeLimitsAreRefusedNotWrapped) {
  KvCache cache = make({{16, 4, 0}}, 4, 1000);
  EXPECT_EQ(cache.can_admit(2, kRowsUnbounded).fit, Fit::too_long);
  EXPECT_EQ(cache.can_admit(kRowsUnbounded, 2).fit, Fit::too_long);
}

TEST(KvCache, StaleIdAborts) {
  KvCache cache = make({{16, 4, 0}}, 1, 64);
  const SequenceId first = cache.admit(4, 1).value();
  cache.release(first);
  const SequenceId second = cache.admit(4, 1).value();
  EXPECT_NE(first, second);
  EXPECT_DEATH(cache.reserve_rows(first, 1), "no such sequence");
  EXPECT_DEATH(cache.release(SequenceId()), "no such sequence");
}

TEST(KvCache, ForkCopiesThePartialBlockOfWhoWritesFirst) {
  KvCache cache = make({{16, 8, 0}}, 3, 64);
  const SequenceId parent = cache.admit(20, 20).value();  // 39 rows: 3 blocks
  cache.reserve_rows(parent, 20);
  const SequenceId child = cache.fork(parent, 39).value();
  cache.check_invariants();
  EXPECT_EQ(cache.stats(0).pool.active, 2u) << "nothing is copied yet";
  EXPECT_EQ(cache.stats(0).claimed, 1u + 1u + 2u) << "the third blocks of both, and a copy of the last block for each";
  cache.reserve_rows(parent, 1);
  ASSERT_EQ(cache.copies().size(), 1u);
  EXPECT_EQ(cache.copies()[0].from, 1);
  EXPECT_EQ(cache.copies()[0].to, 2);
  cache.reserve_rows(child, 1);
  EXPECT_EQ(cache.copies().size(), 1u) << "the child is the last holder and writes in place";
  EXPECT_EQ(cache.stats(0).claimed, 2u);
  cache.check_invariants();
}

TEST(KvCache, ForkThatDoesNotFitChangesNothing) {
  KvCache cache = make({{16, 4, 0}}, 3, 64);
  const SequenceId parent = cache.admit(20, 20).value();
  cache.reserve_rows(parent, 20);
  const Result<SequenceId> child = cache.fork(parent, 39);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().code, ErrorCode::exhausted);
  EXPECT_THAT(child.error().message, AllOf(HasSubstr("3 KV blocks"), HasSubstr("1 are unclaimed")));
  cache.check_invariants();
  EXPECT_EQ(cache.stats(0).claimed, 1u);
}

TEST(KvCache, TruncatedRowsGoBackToTheClaim) {
  KvCache cache = make({{16, 4, 0}}, 1, 64);
  const SequenceId sequence = cache.admit(40, 10).value();
  cache.reserve_rows(sequence, 40);
  cache.truncate(sequence, 16);
  EXPECT_EQ(cache.stats(0).pool.active, 1u);
  EXPECT_EQ(cache.stats(0).claimed, 3u);
  cache.check_invariants();
  cache.reserve_rows(sequence, 33);
  EXPECT_EQ(cache.stats(0).pool.active, 4u);
}

TEST(KvCache, QuarantineNeverBreaksAPromise) {
  KvCache cache = make({{16, 4, 0}}, 2, 64);
  const SequenceId sequence = cache.admit(33, 0).value();
  ASSERT_TRUE(cache.quarantine(0, 3).ok());
  EXPECT_EQ(cache.quarantine(0, 2).error().code, ErrorCode::exhausted)
      << "three blocks are promised and three are left";
  cache.reserve_rows(sequence, 33);
  cache.check_invariants();
  EXPECT_EQ(cache.can_admit(64, 0).fit, Fit::too_large) << "it can never fit while the block is out";
  cache.unquarantine(0, 3);
  EXPECT_EQ(cache.can_admit(64, 0).fit, Fit::exhausted);
}

// Random operations against a naive twin that keeps each sequence's rows as a plain list. Memory is played with one
// number a row: every row of every sequence must read back through its tables what was written, whatever was shared,
// copied, truncated and recycled meanwhile. Aliased or lost blocks cannot pass.
class PlayedMemory {
 public:
  PlayedMemory(std::vector<GroupConfig> groups, std::uint32_t max_sequences, std::uint64_t context, std::uint64_t seed)
      : cache_(make(std::move(groups), max_sequences, context, seed % 2 == 0 ? std::nullopt : std::optional(seed))),
        memory_(cache_.groups()),
        context_(context),
        random_(seed) {}

  void step() {
    switch (random_.below(8)) {
      case 0:
        admit();
        break;
      case 1:
        fork();
        break;
      case 2:
        release();
        break;
      case 3:
        truncate();
        break;
      default:
        grow();
        break;
    }
    cache_.check_invariants();
    verify();
  }

  void finish() {
    while (!twins_.empty()) release();
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
      const GroupStats stats = cache_.stats(g);
      EXPECT_EQ(stats.pool.free, stats.pool.total);
      EXPECT_EQ(stats.claimed, 0u);
    }
  }
  int admitted = 0, refused = 0, forked = 0, copied = 0;

 private:
  struct Twin {
    std::vector<std::uint64_t> rows;
    std::uint64_t bound = 0;
    std::uint32_t shared_rows = 0;  // truncation below is not offered
  };

  std::map<SequenceId, Twin>::iterator any() {
    auto at = twins_.begin();
    std::advance(at, random_.below(static_cast<std::uint32_t>(twins_.size())));
    return at;
  }

  void admit() {
    const std::uint64_t prompt = 1 + random_.below(static_cast<std::uint32_t>(context_)), max_new = random_.below(20);
    const FitVerdict verdict = cache_.can_admit(prompt, max_new);
    const Result<SequenceId> sequence = cache_.admit(prompt, max_new);
    ASSERT_EQ(sequence.ok(), verdict.ok());
    sequence.ok() ? ++admitted : ++refused;
    if (sequence.ok()) twins_[*sequence] = {{}, rows_bound(prompt, max_new), 0};
  }

  void fork() {
    if (twins_.empty()) return;
    const auto parent = any();
    const std::uint64_t bound = std::max<std::uint64_t>(parent->second.rows.size() + random_.below(20), 1);
    const Result<SequenceId> child = cache_.fork(parent->first, bound);
    if (!child.ok()) return;
    ++forked;
    const auto shared = static_cast<std::uint32_t>(parent->second.rows.size());
    parent->second.shared_rows = std::max(parent->second.shared_rows, shared);
    twins_[*child] = {parent->second.rows, bound, shared};
  }

  void grow() {
    if (twins_.empty()) return;
    const auto at = any();
    Twin& twin = at->second;
    const std::uint64_t left = twin.bound - twin.rows.size();
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, random_.below(12)));
    cache_.reserve_rows(at->first, n);
    for (const CopyBlock& copy : cache_.copies()) {
      ++copied;
      memory_[copy.group][copy.to] = memory_[copy.group][copy.from];
    }
    cache_.clear_copies();
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t g = 0; g < cache_.groups(); ++g) row(at->first, g, twin.rows.size()) = next_value_;
      twin.rows.push_back(next_value_++);
    }
  }

  void truncate() {
    if (twins_.empty()) return;
    const auto at = any();
    std::vector<std::uint64_t>& rows = at->second.rows;
    std::uint32_t lowest = at->second.shared_rows;
    for (std::uint32_t g = 0; g < cache_.groups(); ++g) {  // whole blocks beyond what was ever shared
      const std::uint32_t tokens = cache_.table(at->first, g).block_tokens();
      lowest = std::max(lowest, static_cast<std::uint32_t>(blocks_for_rows(at->second.shared_rows, tokens)) * tokens);
    }
    if (rows.size() <= lowest) return;
    const std::uint32_t keep = lowest + random_.below(static_cast<std::uint32_t>(rows.size()) - lowest);
    cache_.truncate(at->first, keep);
    rows.resize(keep);
  }

  void release() {
    if (twins_.empty()) return;
    const auto at = any();
    cache_.release(at->first);
    twins_.erase(at);
  }

  std::uint64_t& row(SequenceId sequence, std::uint32_t group, std::size_t position) {
    const BlockTable& table = cache_.table(sequence, group);
    return memory_[group][table.ids()[position / table.block_tokens()]][position % table.block_tokens()];
  }

  void verify() {
    for (const auto& [sequence, twin] : twins_) {
      ASSERT_EQ(cache_.rows(sequence), twin.rows.size());
      for (std::uint32_t g = 0; g < cache_.groups(); ++g)
        for (std::size_t i = 0; i < twin.rows.size(); ++i) ASSERT_EQ(row(sequence, g, i), twin.rows[i]) << "row " << i;
    }
  }

  KvCache cache_;
  std::vector<std::map<BlockId, std::map<std::size_t, std::uint64_t>>> memory_;  // [group][block][offset]
  std::map<SequenceId, Twin> twins_;
  std::uint64_t context_;
  std::uint64_t next_value_ = 1;
  PhiloxSequence random_;
};

TEST(KvCache, RandomOperationsKeepEveryRowOfEverySequence) {
  int admitted = 0, refused = 0, forked = 0, copied = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    PlayedMemory play({{4, 30, 1}, {8, 14, 0}}, 6, 48, seed);
    for (int step = 0; step < 300 && !::testing::Test::HasFatalFailure(); ++step) play.step();
    play.finish();
    admitted += play.admitted, refused += play.refused, forked += play.forked, copied += play.copied;
  }
  EXPECT_GT(std::min({admitted, refused, forked, copied}), 20) << "the random walk visits every kind of event";
}

}  // namespace
}  // namespace kvasir::cache
