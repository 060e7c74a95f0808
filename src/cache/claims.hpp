// Claims: promises of blocks to admitted requests, numbers rather than block states.
// Thread rule: values; one owner.
//
// Invariant of a group with blocks of its own: claimed <= free + cached - pinned. Of groups that draw superpages from one
// arena, over all of them at once, with deficit = max(0, claimed - (free + cached - pinned)):
//
//   sum of ceil(deficit / blocks_per_superpage) <= superpages that no group has
//
// So a claimed block can always be allocated (evicting a cached block or slicing a superpage if need be), and nothing
// admitted ever fails for memory. Every step keeps it: a block taken from a fresh superpage lowers its group's term by one
// as the free superpages fall by one; an empty superpage given back raises both by at most one. No order of steps of any
// groups can end in one waiting for another.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "format/reach.hpp"

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

  // Promises `blocks`. REQUIRES: an AdmissionBudget allows it, or as many have just been freed.
  void claim(std::uint64_t blocks) { claimed_ += blocks; }
  // `blocks` claimed ones have been allocated / will not be needed. REQUIRES: blocks <= claimed().
  void convert(std::uint64_t blocks);
  void give_back(std::uint64_t blocks);

  std::uint64_t claimed() const { return claimed_; }
  std::uint32_t reserved() const { return reserved_; }

 private:
  std::uint32_t reserved_;
  std::uint64_t claimed_ = 0;
};

// What a sequence begins with: rows of a running one, whose full blocks it shares. That one's window may let them go before
// they are free, so it claims so many blocks more.
struct SharedRows {
  std::uint32_t rows = 0;
  std::array<std::uint32_t, kMaxGroups> claimed_by_other{};
};

// What a request asks for.
struct Demand {
  std::uint64_t rows = 0;            // most of a sequence
  std::uint64_t prompt_tokens = 0;   // of them, computed several a step
  std::uint32_t sequences = 1;       // beams: the first computes the prompt, the others fork from it
  SharedRows shared = {};
};

// One group as an admission sees it. Blocks, unless said otherwise.
struct GroupBudget {
  std::uint32_t block_tokens = 1;
  format::Reach reach = {};
  std::uint64_t max_step_rows = 0;         // rows that a step may add to one sequence; 0: as many as a prompt has
  std::uint64_t available = 0;             // free + cached - pinned
  std::uint64_t promised = 0;              // claimed + reserved
  std::uint64_t unusable = 0;              // for ever: reserved + quarantined
  std::uint64_t occupied = 0;              // active + quarantined + pinned
  std::uint64_t total = 0;                 // of its own; with superpages of the arena: what all of them would give
  std::uint32_t blocks_per_superpage = 0;  // 0: the group has blocks of its own and draws none

  // What a sequence of so many rows and prompt tokens may hold at one time beside the full blocks of its first shared_rows.
  std::uint64_t wanted(std::uint64_t rows, std::uint64_t prompt_tokens, std::uint64_t shared_rows = 0) const;
  // What sequences 2 .. n come to hold besides, however they fork from each other: what none shares with the prompt, and a
  // copy of a last block each. In a window up to half of the sequences may hold what others have passed.
  std::uint64_t wanted_by_forks(const Demand& demand) const;
};

// What can still be admitted, in all groups at once: a snapshot that a planner may spend without touching the cache.
// The one admission rule: the cache's own admit() asks the same check().
class AdmissionBudget {
 public:
  AdmissionBudget() = default;
  // free_superpages: that no group has, of all in the arena.
  AdmissionBudget(std::uint64_t max_sequence_rows, std::uint64_t free_slots, std::uint64_t free_superpages = 0,
                  std::uint64_t all_superpages = 0)
      : max_sequence_rows_(max_sequence_rows), free_slots_(free_slots), free_superpages_(free_superpages),
        all_superpages_(all_superpages) {}

  // REQUIRES: fewer than kMaxGroups so far.
  void add_group(const GroupBudget& group);

  // Would it fit? What can never fit is told before what must wait.
  FitVerdict check(const Demand& demand) const;
  // REQUIRES: check() of the same is ok.
  void take(const Demand& demand);

  // Can so many blocks more be promised now? wanted: [groups].
  FitVerdict check_blocks(std::span<const std::uint64_t> wanted) const;
  // Could they if each group's blocks lay in as few superpages as they fill?
  bool fits_compacted(std::span<const std::uint64_t> wanted) const;

  std::span<const GroupBudget> groups() const { return {groups_.data(), group_count_}; }

 private:
  FitVerdict check_ever(std::span<const std::uint64_t> wanted) const;
  std::uint64_t wanted(std::uint32_t group, const Demand& demand, std::uint64_t shared_rows) const;

  std::array<GroupBudget, kMaxGroups> groups_{};
  std::uint32_t group_count_ = 0;
  std::uint64_t max_sequence_rows_ = 0, free_slots_ = 0, free_superpages_ = 0, all_superpages_ = 0;
};

}  // namespace kvasir::cache
