#include "plan/service_model.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::plan {
namespace {

constexpr std::uint64_t kAnyLength =
    std::numeric_limits<std::uint32_t>::max();  // rows and blocks of a window at their most

double to_double(std::uint64_t value) { return static_cast<double>(value); }

// Seconds at the prompt's length, and at each of the lengths after it.
struct Stay {
  std::uint64_t prompt, length;
  double prefill_s, itl_s;

  // at: what is held at a length; sum: its sum over lengths 1 .. n.
  template <class At, class Sum>
  double integral(At&& at, Sum&& sum) const {
    return prefill_s * at(prompt) + itl_s * (sum(length) - sum(prompt));
  }
};

HeldOverLife held_of(const PlannedGroup& g, const Stay& stay) {
  HeldOverLife out;
  const std::uint64_t block_span = std::uint64_t{g.merged} * g.layout.block_tokens();  // tokens of a block
  const auto rows_sum = [&](std::uint64_t n) { return ramp_sum(n, g.merged, g.rows(kAnyLength)); };
  const auto blocks_sum = [&](std::uint64_t n) { return ramp_sum(n, block_span, g.blocks(kAnyLength)); };
  const double row_bytes = to_double(g.layout.bytes_per_token()), block_bytes = to_double(g.layout.block_bytes());
  // Sums over lengths are ramps: blocks(n) = min(ceil(n / block_span), most), rows likewise.
  out.payload = row_bytes * stay.integral([&](std::uint64_t n) { return to_double(g.rows(n)); }, rows_sum);
  out.blocks = block_bytes * stay.integral([&](std::uint64_t n) { return to_double(g.blocks(n)); }, blocks_sum);
  // While it holds n blocks, from the last number downwards: of a window the one before may be more than its rows too.
  const double rows_bytes = row_bytes * to_double(g.rows(stay.length)), at_prompt = to_double(g.blocks(stay.prompt));
  std::uint64_t until = stay.length;
  for (std::uint64_t n = g.blocks(stay.length); n > 0 && to_double(n) * block_bytes > rows_bytes; --n) {
    const std::uint64_t from = (n - 1) * block_span;
    const double tokens = until > stay.prompt ? to_double(until - std::max(stay.prompt, from)) : 0;
    const double seconds = (at_prompt == to_double(n) ? stay.prefill_s : 0) + stay.itl_s * tokens;
    out.unused += (to_double(n) * block_bytes - rows_bytes) * seconds;
    until = from;
  }
  return out;
}

}  // namespace

double ramp_sum(std::uint64_t length, std::uint64_t step, std::uint64_t cap) {
  KV_CHECK(step > 0, "a ramp has steps");
  // Whole steps first: 1 + 2 + ... as often as a step is long.
  const std::uint64_t whole = std::min(length / step, cap);
  const double rising = to_double(step) * 0.5 * to_double(whole) * to_double(whole + 1);
  return rising + to_double(length - whole * step) * to_double(std::min(whole + 1, cap));
}

HeldOverLife held_over_life(const KvGroups& kv, const SequenceLength& one, const ServiceModel& service) {
  const Stay stay{one.prompt, one.length(), service.prefill_s(one), service.itl_s};
  HeldOverLife out;
  out.residence_s = service.residence_s(one);
  for (const PlannedGroup& g : kv.groups) {
    const HeldOverLife held = held_of(g, stay);
    out.payload += held.payload;
    out.blocks += held.blocks;
    out.unused += held.unused;
  }
  return out;
}

}  // namespace kvasir::plan
