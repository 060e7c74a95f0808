// Claims: promises of blocks to admitted requests, numbers rather than block states.
// Thread rule: values; one owner.
//
// Invariant, per group: claimed <= free + cached - pinned. So a claimed block can always be allocated (evicting a
// cached block if need be), and nothing admitted ever fails for memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "cache/block_pool.hpp"

namespace kvasir::cache {

// Groups that one cache may have (full, windows of two sizes, latent, ... ): fixed, so that budgets are plain values.
inline constexpr std::uint32_t kMaxGroups = 8;

enum class Fit : std::uint8_t {
  fits,
  no_sequence_slot,  // every sequence slot is taken: wait
  exhausted,         // too few unclaimed blocks now: wait
  too_long,          // more rows than a sequence may have, for ever
  too_large,         // more blocks than the pool can ever offer
};
constexpr bool never_fits(Fit fit) { return fit == Fit::too_long || fit == Fit::too_large; }

// The answer to "does it fit", with both numbers. A plain value: asking costs no allocation.
struct FitVerdict {
  Fit fit = Fit::fits;
  std::uint32_t group = 0;   // the group that decided (exhausted, too_large)
  std::uint64_t wanted = 0;  // too_long: rows; no_sequence_slot: sequences; else blocks
  std::uint64_t have = 0;    // the same unit: allowed, or available now
  bool ok() const { return fit == Fit::fits; }
  bool operator==(const FitVerdict&) const = default;
};

// For people: names the unit and both numbers. Code does_not_fit or exhausted. REQUIRES: !verdict.ok().
Error to_error(const FitVerdict& verdict);

// One group's claims.
class ClaimLedger {
 public:
  // reserved: blocks that no claim may ever cover.
  explicit ClaimLedger(std::uint32_t reserved = 0) : reserved_(reserved) {}

  // Blocks that claims can ever cover / that a new claim can cover now.
  std::uint64_t usable(const PoolCounts& pool) const;
  std::uint64_t claimable(const PoolCounts& pool) const;

  // Promises `blocks`. Errors: does_not_fit if they exceed usable(), exhausted if they exceed claimable(); both numbers
  // are in the message and nothing has changed.
  Status claim(std::uint64_t blocks, const PoolCounts& pool);
  // `blocks` claimed ones have been allocated / will not be needed. REQUIRES: blocks <= claimed().
  void convert(std::uint64_t blocks);
  void give_back(std::uint64_t blocks);

  std::uint64_t claimed() const { return claimed_; }
  std::uint32_t reserved() const { return reserved_; }
  void check_invariants(const PoolCounts& pool) const;

 private:
  std::uint32_t reserved_;
  std::uint64_t claimed_ = 0;
};

// What can still be admitted, in all groups at once: a snapshot that a planner may spend without touching the cache.
// The one admission rule: the cache's own admit() asks the same check().
class AdmissionBudget {
 public:
  AdmissionBudget() = default;
  AdmissionBudget(std::uint64_t max_sequence_rows, std::uint64_t free_slots)
      : max_sequence_rows_(max_sequence_rows), free_slots_(free_slots) {}

  // REQUIRES: fewer than kMaxGroups so far.
  void add_group(std::uint32_t block_tokens, std::uint64_t usable, std::uint64_t claimable);

  // Would a sequence of at most `rows` rows that shares nothing fit? What can never fit is told before what must wait.
  FitVerdict check(std::uint64_t rows) const;
  // REQUIRES: check(rows).ok().
  void take(std::uint64_t rows);

 private:
  struct Group {
    std::uint32_t block_tokens = 1;
    std::uint64_t usable = 0, claimable = 0;
  };
  std::array<Group, kMaxGroups> groups_{};
  std::uint32_t group_count_ = 0;
  std::uint64_t max_sequence_rows_ = 0, free_slots_ = 0;
};

}  // namespace kvasir::cache
