#include "plan/mix_capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.hpp"
#include "plan/search.hpp"

namespace kvasir::plan {
namespace {

constexpr std::uint64_t kDraws = 1000, kRank = 990;     // kGuarantee of the draws are at most the kRank-th
constexpr double kNormalQuantile = 2.3263478740408408;  // of kGuarantee
constexpr double kBytesMax = 0x1p62;
constexpr std::uint64_t kStream = 0x6d6978;  // of the draws

// Sums of whole numbers divided by weights: what is whole but for rounding stays whole.
Result<std::uint64_t> whole_up(double value) {
  if (!(value <= kBytesMax))
    return Error{ErrorCode::bad_input,
                 fmt::format("the length mix takes {:g} bytes, valid: at most {:g}", value, kBytesMax)};
  const double nearest = std::round(value);
  return static_cast<std::uint64_t>(std::abs(value - nearest) <= 1e-12 * nearest ? nearest : std::ceil(value));
}

// held_of: what so many sequences take. What is too large to count does not fit.
template <class Held>
Result<std::uint64_t> most_of_mix(PlanInput input, std::uint64_t memory, Held&& held_of) {
  return largest(kMaxRequests, [&](std::uint64_t sequences) -> Result<bool> {
    Result<HeldRows> held = held_of(sequences);
    if (!held.ok()) return false;
    input.requests = sequences;
    input.held = *std::move(held);
    return plan_fits(input, memory);
  });
}

}  // namespace

Result<MixCapacity> MixCapacity::create(const LengthMix& mix, const KvGroups& kv, std::uint64_t seed) {
  std::vector<double> weights;
  weights.reserve(mix.lengths.size());
  for (const SequenceLength& one : mix.lengths) weights.push_back(one.weight);
  MixCapacity out(WeightedDraw(weights), seed);
  out.blocks_.assign(kv.groups.size(), 0);
  out.each_.reserve(mix.lengths.size());
  for (const SequenceLength& one : mix.lengths) KV_TRY(out.add(one, kv));
  out.add_moments(mix);
  return out;
}

Status MixCapacity::add(const SequenceLength& one, const KvGroups& kv) {
  KV_ASSIGN(const std::uint64_t bytes, kv.block_bytes(one.length()));
  KV_ASSIGN(const std::uint64_t payload, kv.payload_bytes(one.length()));
  for (std::size_t g = 0; g < kv.groups.size(); ++g) {
    blocks_[g] += one.weight * static_cast<double>(kv.groups[g].blocks(one.length()));
  }
  if (!kv.groups.empty())
    allocated_tokens_ += one.weight * static_cast<double>(round_up(one.length(), kv.groups[0].layout.block_tokens()));
  each_.push_back(static_cast<double>(bytes));
  weight_ += one.weight;
  block_bytes_ += one.weight * static_cast<double>(bytes);
  payload_bytes_ += one.weight * static_cast<double>(payload);
  return ok_status();
}

void MixCapacity::add_moments(const LengthMix& mix) {
  double squares = 0, cubes = 0;
  for (std::size_t i = 0; i < each_.size(); ++i) {
    const double off = each_[i] - mean_block_bytes();
    squares += mix.lengths[i].weight * off * off;
    cubes += mix.lengths[i].weight * off * off * off;
  }
  deviation_ = std::sqrt(squares / weight_);
  skewness_ = deviation_ > 0 ? cubes / weight_ / (deviation_ * deviation_ * deviation_) : 0;
}

Result<HeldRows> MixCapacity::held(std::uint64_t sequences, double times) const {
  HeldRows out;
  const double count = static_cast<double>(sequences) * times;
  for (const double blocks : blocks_) {
    KV_ASSIGN(const std::uint64_t whole, whole_up(count * blocks / weight_));
    out.blocks.push_back(whole);
  }
  KV_ASSIGN(out.payload_bytes, whole_up(count * payload_bytes_ / weight_));
  return out;
}

Result<HeldRows> MixCapacity::expected(std::uint64_t sequences) const { return held(sequences, 1); }

Result<HeldRows> MixCapacity::guaranteed(std::uint64_t sequences) {
  if (block_bytes_ == 0) return held(sequences, 1);  // states alone
  return held(sequences, sum_quantile(sequences) / (static_cast<double>(sequences) * mean_block_bytes()));
}

double MixCapacity::sum_quantile(std::uint64_t sequences) {
  if (sequences > kDrawnSequences) {
    const double count = static_cast<double>(sequences), z = kNormalQuantile;
    const double standard = z + (z * z - 1) * skewness_ / (6 * std::sqrt(count));
    return count * mean_block_bytes() + deviation_ * std::sqrt(count) * standard;
  }
  if (sums_.empty()) draw_sums();
  std::vector<double> of_draws(kDraws);
  for (std::size_t draw = 0; draw < kDraws; ++draw) of_draws[draw] = sums_[draw * kDrawnSequences + sequences - 1];
  std::nth_element(of_draws.begin(), of_draws.begin() + kRank - 1, of_draws.end());
  return of_draws[kRank - 1];
}

void MixCapacity::draw_sums() {
  sums_.resize(kDraws * kDrawnSequences);
  PhiloxSequence draws(seed_, kStream);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    double sum = 0;
    for (std::size_t i = 0; i < kDrawnSequences; ++i)
      sums_[draw * kDrawnSequences + i] = sum += each_[draw_.draw(draws)];
  }
}

Result<std::uint64_t> most_expected(const PlanInput& input, const MixCapacity& mix, std::uint64_t memory) {
  return most_of_mix(input, memory, [&](std::uint64_t sequences) { return mix.expected(sequences); });
}

Result<std::uint64_t> most_guaranteed(const PlanInput& input, MixCapacity& mix, std::uint64_t memory) {
  return most_of_mix(input, memory, [&](std::uint64_t sequences) { return mix.guaranteed(sequences); });
}

}  // namespace kvasir::plan
