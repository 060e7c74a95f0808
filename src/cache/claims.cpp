#include "cache/claims.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/units.hpp"
#include "cache/footprint.hpp"

namespace kvasir::cache {
namespace {

std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

Error to_error(const FitVerdict& v) {
  switch (v.fit) {
    case Fit::too_long:
      return {ErrorCode::does_not_fit,
              fmt::format("the request needs {} token rows (prompt + max_tokens - 1) and the context holds {}",
                          v.wanted, v.have)};
    case Fit::too_large:
      return {ErrorCode::does_not_fit,
              fmt::format("the request needs {} KV blocks of group {} and {} are usable", v.wanted, v.group, v.have)};
    case Fit::exhausted:
      return {ErrorCode::exhausted,
              fmt::format("{} KV blocks of group {} are needed and {} are unclaimed now", v.wanted, v.group, v.have)};
    case Fit::no_sequence_slot:
      return {ErrorCode::exhausted, fmt::format("{} sequence {} needed and {} are free now", v.wanted, v.wanted == 1 ? "slot is" : "slots are", v.have)};
    case Fit::fits:
      break;
  }
  KV_CHECK(false, "to_error() of a verdict that fits");
}

void ClaimLedger::convert(std::uint64_t blocks) {
  KV_CHECK(blocks <= claimed_, "allocated more blocks than were claimed");
  claimed_ -= blocks;
}

void ClaimLedger::give_back(std::uint64_t blocks) {
  KV_CHECK(blocks <= claimed_, "gave back more blocks than were claimed");
  claimed_ -= blocks;
}

std::uint64_t GroupBudget::wanted(std::uint64_t rows, std::uint64_t prompt_tokens, std::uint64_t shared_rows) const {
  const std::uint64_t step = rows_of_step(prompt_tokens > shared_rows ? prompt_tokens - shared_rows : 0, max_step_rows);
  return std::min(blocks_for_rows(rows, block_tokens) - shared_rows / block_tokens, blocks_held(rows, reach, step, block_tokens));
}

void AdmissionBudget::add_group(const GroupBudget& group) {
  KV_CHECK(group_count_ < kMaxGroups, "too many groups in a budget");
  groups_[group_count_++] = group;
}

namespace {

// Superpages that each group asks of one arena, and the group that asks for most of them.
struct Asked {
  std::uint64_t superpages = 0, most = 0;
  std::uint32_t group = 0;
  void add(std::uint32_t g, std::uint64_t blocks, std::uint32_t blocks_per_superpage) {
    const std::uint64_t needed = ceil_div(blocks, blocks_per_superpage);
    superpages += needed;
    if (needed > most) most = needed, group = g;
  }
  // Superpages for the group that asks for most, where the others get theirs.
  std::uint64_t left_for_it(std::uint64_t superpages_there) const {
    return minus_or_zero(superpages_there, superpages - most);
  }
};

}  // namespace

FitVerdict AdmissionBudget::check_ever(std::span<const std::uint64_t> wanted) const {
  Asked asked;
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    const GroupBudget& group = groups_[g];
    const std::uint64_t usable = minus_or_zero(group.total, group.unusable);
    if (wanted[g] > usable) return {Fit::too_large, g, wanted[g], usable};
    if (group.blocks_per_superpage > 0) asked.add(g, wanted[g] + group.unusable, group.blocks_per_superpage);
  }
  if (asked.superpages <= all_superpages_) return {};
  const GroupBudget& group = groups_[asked.group];
  const std::uint64_t blocks = asked.left_for_it(all_superpages_) * group.blocks_per_superpage;
  return {Fit::too_large, asked.group, wanted[asked.group], minus_or_zero(blocks, group.unusable)};
}

FitVerdict AdmissionBudget::check_blocks(std::span<const std::uint64_t> wanted) const {
  Asked asked;
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    const GroupBudget& group = groups_[g];
    const std::uint64_t deficit = minus_or_zero(group.promised + wanted[g], group.available);
    if (group.blocks_per_superpage > 0) {
      asked.add(g, deficit, group.blocks_per_superpage);
    } else if (wanted[g] > 0 && deficit > 0) {
      return {Fit::exhausted, g, wanted[g], minus_or_zero(group.available, group.promised)};
    }
  }
  if (asked.superpages <= free_superpages_) return {};
  const GroupBudget& group = groups_[asked.group];
  const std::uint64_t blocks = group.available + asked.left_for_it(free_superpages_) * group.blocks_per_superpage;
  return {Fit::exhausted, asked.group, wanted[asked.group], minus_or_zero(blocks, group.promised)};
}

bool AdmissionBudget::fits_compacted(std::span<const std::uint64_t> wanted) const {
  Asked asked;
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    const GroupBudget& group = groups_[g];
    if (group.blocks_per_superpage == 0) {
      if (group.promised + wanted[g] > group.available) return false;
      continue;
    }
    asked.add(g, group.occupied + group.promised + wanted[g], group.blocks_per_superpage);
  }
  return asked.superpages <= all_superpages_;
}

std::uint64_t GroupBudget::wanted_by_forks(const Demand& demand) const {
  if (demand.sequences <= 1) return 0;
  const std::uint64_t further = demand.sequences - 1, all = blocks_for_rows(demand.rows, block_tokens);
  const std::uint64_t own = all - std::min(all, demand.prompt_tokens / block_tokens) + 1;
  if (reach.window == 0) return further * own + 1;
  const std::uint64_t most = blocks_held(demand.rows, reach, 1, block_tokens);
  return further * std::min(own, most + ceil_div(most, 2)) + most + 1;
}

std::uint64_t AdmissionBudget::wanted(std::uint32_t group, const Demand& demand, std::uint64_t shared_rows) const {
  return groups_[group].wanted(demand.rows, demand.prompt_tokens, shared_rows) + groups_[group].wanted_by_forks(demand);
}

FitVerdict AdmissionBudget::check(const Demand& demand) const {
  if (demand.rows > max_sequence_rows_) return {Fit::too_long, 0, demand.rows, max_sequence_rows_};
  std::array<std::uint64_t, kMaxGroups> alone{}, now{};
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    alone[g] = wanted(g, demand, 0);
    now[g] = wanted(g, demand, demand.shared.rows) + demand.shared.claimed_by_other[g];
  }
  if (const FitVerdict never = check_ever(alone); !never.ok()) return never;
  if (demand.sequences > free_slots_) return {Fit::no_sequence_slot, 0, demand.sequences, free_slots_};
  return check_blocks(now);
}

void AdmissionBudget::take(const Demand& demand) {
  KV_CHECK(check(demand).ok(), "took from a budget what does not fit in it");
  free_slots_ -= demand.sequences;
  for (std::uint32_t g = 0; g < group_count_; ++g)
    groups_[g].promised += wanted(g, demand, demand.shared.rows) + demand.shared.claimed_by_other[g];
}

}  // namespace kvasir::cache
