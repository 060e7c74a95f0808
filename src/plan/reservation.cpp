#include "plan/reservation.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace kvasir::plan {
namespace {

constexpr ReservationPolicy kContiguous[] = {ReservationPolicy::contiguous_max, ReservationPolicy::contiguous_pow2,
                                             ReservationPolicy::contiguous_pow2_output,
                                             ReservationPolicy::contiguous_exact};

// Sums over the mix.
struct Sums {
  double seconds = 0;                           // that sequences stay
  double reserved = 0, payload = 0, waste = 0;  // byte-seconds
  double end_reserved = 0, end_payload = 0;     // bytes
};

std::uint64_t reserved_tokens(ReservationPolicy policy, const SequenceLength& one, std::uint64_t allowed) {
  switch (policy) {
    case ReservationPolicy::contiguous_max:
      return allowed;
    case ReservationPolicy::contiguous_pow2:
      return std::min(std::bit_ceil(one.length()), allowed);
    case ReservationPolicy::contiguous_pow2_output:
      return std::min(one.prompt + std::bit_ceil(one.output), allowed);
    default:
      return one.length();
  }
}

// What a sequence takes whatever the policy.
struct Life {
  double weight = 1;
  HeldOverLife held;
  double payload = 0, blocks = 0;  // bytes at its end
};

// Without a time that sequences stay each counts once, at its end.
Result<Life> life_of(const SequenceLength& one, const KvGroups& kv, bool apart, const ServiceModel& service) {
  Life out;
  out.weight = one.weight;
  KV_ASSIGN(const std::uint64_t payload, kv.payload_bytes(one.length()));
  KV_ASSIGN(const std::uint64_t blocks, kv.block_bytes(one.length()));
  out.payload = static_cast<double>(payload);
  out.blocks = static_cast<double>(blocks);
  out.held =
      apart ? held_over_life(kv, one, service) : HeldOverLife{1, out.payload, out.blocks, out.blocks - out.payload};
  return out;
}

// reserved: bytes from beginning to end.
void add_constant(Sums& sums, const Life& life, double reserved) {
  sums.seconds += life.weight * life.held.residence_s;
  sums.reserved += life.weight * life.held.residence_s * reserved;
  sums.payload += life.weight * life.held.payload;
  sums.waste += life.weight * life.held.residence_s * (reserved - life.payload);
  sums.end_reserved += life.weight * reserved;
  sums.end_payload += life.weight * life.payload;
}

void add_growing(Sums& sums, const Life& life) {
  sums.seconds += life.weight * life.held.residence_s;
  sums.reserved += life.weight * life.held.blocks;
  sums.payload += life.weight * life.held.payload;
  sums.waste += life.weight * life.held.unused;
  sums.end_reserved += life.weight * life.blocks;
  sums.end_payload += life.weight * life.payload;
}

Reservation finish(ReservationPolicy policy, const Sums& sums, const Sums& paged, bool apart) {
  Reservation out;
  out.policy = policy;
  out.reserved_bytes = sums.reserved / sums.seconds;
  out.waste_share = sums.waste / sums.reserved;
  if (apart) {
    out.used_share = sums.payload / sums.reserved;
    out.unfilled_share = std::max(0.0, 1 - *out.used_share - out.waste_share);  // rounding alone could make it negative
  }
  out.end_waste_share = 1 - sums.end_payload / sums.end_reserved;
  out.concurrency = paged.reserved / paged.seconds / out.reserved_bytes;
  return out;
}

}  // namespace

std::string_view to_string(ReservationPolicy policy) {
  switch (policy) {
    case ReservationPolicy::contiguous_max:
      return "contiguous_max";
    case ReservationPolicy::contiguous_pow2:
      return "contiguous_pow2";
    case ReservationPolicy::contiguous_pow2_output:
      return "contiguous_pow2_output";
    case ReservationPolicy::contiguous_exact:
      return "contiguous_exact";
    case ReservationPolicy::paged_claimed:
      return "paged_claimed";
    case ReservationPolicy::paged:
      return "paged";
  }
  return "?";
}

Result<std::vector<Reservation>> compare_reservations(const LengthMix& mix, const KvGroups& kv, std::uint64_t allowed,
                                                      const ServiceModel& service) {
  KV_CHECK(allowed >= mix.longest(), "what is allowed covers the mix");
  std::vector<Reservation> out;
  if (kv.groups.empty()) return out;
  Sums contiguous[std::size(kContiguous)], claimed, paged;
  for (const SequenceLength& one : mix.lengths) {
    if (one.weight == 0) continue;
    KV_ASSIGN(const Life life, life_of(one, kv, mix.apart, service));
    for (std::size_t i = 0; i < std::size(kContiguous); ++i) {
      KV_ASSIGN(const std::uint64_t reserved, kv.payload_bytes(reserved_tokens(kContiguous[i], one, allowed)));
      add_constant(contiguous[i], life, static_cast<double>(reserved));
    }
    add_constant(claimed, life, life.blocks);
    add_growing(paged, life);
  }
  for (std::size_t i = 0; i < std::size(kContiguous); ++i) {
    if (kContiguous[i] == ReservationPolicy::contiguous_pow2_output && !mix.apart) continue;
    out.push_back(finish(kContiguous[i], contiguous[i], paged, mix.apart));
  }
  out.push_back(finish(ReservationPolicy::paged_claimed, claimed, paged, mix.apart));
  out.push_back(finish(ReservationPolicy::paged, paged, paged, mix.apart));
  return out;
}

}  // namespace kvasir::plan
