#include "cache/claims.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
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
      return {ErrorCode::exhausted, fmt::format("{} sequence slot is needed and {} are free now", v.wanted, v.have)};
    case Fit::fits:
      break;
  }
  KV_CHECK(false, "to_error() of a verdict that fits");
}

std::uint64_t ClaimLedger::usable(const PoolCounts& pool) const {
  return minus_or_zero(std::uint64_t{pool.total} - pool.quarantined, reserved_);
}

std::uint64_t ClaimLedger::claimable(const PoolCounts& pool) const {
  return minus_or_zero(std::uint64_t{pool.free} + pool.cached - pool.pinned, claimed_ + reserved_);
}

Status ClaimLedger::claim(std::uint64_t blocks, const PoolCounts& pool) {
  if (blocks > usable(pool)) return to_error({Fit::too_large, 0, blocks, usable(pool)});
  if (blocks > claimable(pool)) return to_error({Fit::exhausted, 0, blocks, claimable(pool)});
  claimed_ += blocks;
  return ok_status();
}

void ClaimLedger::convert(std::uint64_t blocks) {
  KV_CHECK(blocks <= claimed_, "allocated more blocks than were claimed");
  claimed_ -= blocks;
}

void ClaimLedger::give_back(std::uint64_t blocks) {
  KV_CHECK(blocks <= claimed_, "gave back more blocks than were claimed");
  claimed_ -= blocks;
}

void ClaimLedger::check_invariants(const PoolCounts& pool) const {
  KV_CHECK(claimed_ <= std::uint64_t{pool.free} + pool.cached - pool.pinned, "claims <= free + cached - pinned");
}

void AdmissionBudget::add_group(std::uint32_t block_tokens, std::uint64_t usable, std::uint64_t claimable) {
  KV_CHECK(group_count_ < kMaxGroups, "too many groups in a budget");
  groups_[group_count_++] = {block_tokens, usable, claimable};
}

FitVerdict AdmissionBudget::check(std::uint64_t rows) const {
  if (rows > max_sequence_rows_) return {Fit::too_long, 0, rows, max_sequence_rows_};
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    const std::uint64_t blocks = blocks_for_rows(rows, groups_[g].block_tokens);
    if (blocks > groups_[g].usable) return {Fit::too_large, g, blocks, groups_[g].usable};
  }
  if (free_slots_ == 0) return {Fit::no_sequence_slot, 0, 1, 0};
  for (std::uint32_t g = 0; g < group_count_; ++g) {
    const std::uint64_t blocks = blocks_for_rows(rows, groups_[g].block_tokens);
    if (blocks > groups_[g].claimable) return {Fit::exhausted, g, blocks, groups_[g].claimable};
  }
  return {};
}

void AdmissionBudget::take(std::uint64_t rows) {
  KV_CHECK(check(rows).ok(), "took from a budget what does not fit in it");
  --free_slots_;
  for (std::uint32_t g = 0; g < group_count_; ++g)
    groups_[g].claimable -= blocks_for_rows(rows, groups_[g].block_tokens);
}

}  // namespace kvasir::cache
