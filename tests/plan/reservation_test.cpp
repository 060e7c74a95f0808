// What sequences hold over their life and what policies reserve for them, beside sums token by token.
#include "plan/reservation.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "tests/plan/mixes.hpp"

namespace kvasir::plan {
namespace {

constexpr ServiceModel kService{2000, 0.05};

double bytes(const KvGroups& kv, std::uint64_t length) { return static_cast<double>(kv.payload_bytes(length).value()); }
double blocks(const KvGroups& kv, std::uint64_t length) { return static_cast<double>(kv.block_bytes(length).value()); }

// visit(seconds, tokens) for each moment that something changes.
template <class Visit>
void each_token(const SequenceLength& one, Visit&& visit) {
  visit(static_cast<double>(one.prompt) / 2000, one.prompt);
  for (std::uint64_t j = 1; j <= one.output; ++j) visit(0.05, one.prompt + j);
}

TEST(RampSum, IsTheSum) {
  for (const std::uint64_t step : {1, 3, 32}) {
    for (const std::uint64_t cap : {1, 2, 7, 1'000'000}) {
      double sum = 0;
      for (std::uint64_t n = 1; n <= 300; ++n) {
        sum += static_cast<double>(std::min((n + step - 1) / step, cap));
        ASSERT_EQ(ramp_sum(n, step, cap), sum) << n << " " << step << " " << cap;
      }
    }
  }
  EXPECT_EQ(ramp_sum(0, 5, 9), 0);
}

// What is never used: block by block, more than the rows that there will be.
double never_used(const KvGroups& kv, std::uint64_t now, std::uint64_t end) {
  double sum = 0;
  for (const PlannedGroup& g : kv.groups) {
    const auto held = static_cast<double>(g.blocks(now) * g.layout.block_bytes());
    const auto wanted = static_cast<double>(g.rows(end) * g.layout.bytes_per_token());
    sum += std::max(0.0, held - wanted);
  }
  return sum;
}

TEST(HeldOverLife, IsTheSumOverTokens) {
  for (const std::uint32_t block : {16u, 32u, 256u}) {
    const KvGroups kv = test::groups(test::many_kinds(), block);
    ASSERT_GE(kv.groups.size(), 6u);
    for (const SequenceLength one :
         {SequenceLength{1, 1}, {31, 1}, {32, 1}, {33, 200}, {64, 64}, {100, 28}, {127, 2}, {1000, 700}, {5, 3000}}) {
      double payload = 0, held = 0, unused = 0, seconds = 0;
      each_token(one, [&](double time, std::uint64_t tokens) {
        payload += time * bytes(kv, tokens);
        held += time * blocks(kv, tokens);
        unused += time * never_used(kv, tokens, one.length());
        seconds += time;
      });
      const HeldOverLife told = held_over_life(kv, one, kService);
      EXPECT_NEAR(told.residence_s / seconds, 1, 1e-9);
      EXPECT_NEAR(told.payload / payload, 1, 1e-9) << one.prompt;
      EXPECT_NEAR(told.blocks / held, 1, 1e-9) << one.prompt;
      EXPECT_NEAR(told.unused, unused, 1e-9 * held) << one.prompt << "+" << one.output << " in blocks of " << block;
    }
  }
}

double reserved(ReservationPolicy policy, const KvGroups& kv, const SequenceLength& one, std::uint64_t now,
                std::uint64_t allowed) {
  switch (policy) {
    case ReservationPolicy::contiguous_max:
      return bytes(kv, allowed);
    case ReservationPolicy::contiguous_pow2:
      return bytes(kv, std::min(allowed, std::bit_ceil(one.length())));
    case ReservationPolicy::contiguous_pow2_output:
      return bytes(kv, std::min(allowed, one.prompt + std::bit_ceil(one.output)));
    case ReservationPolicy::contiguous_exact:
      return bytes(kv, one.length());
    case ReservationPolicy::paged_claimed:
      return blocks(kv, one.length());
    case ReservationPolicy::paged:
      return blocks(kv, now);
  }
  return 0;
}

TEST(Reservation, IsTheSumOverTokens) {
  for (const artifact::ModelShape& shape : {test::plain(4, 64, 4, 2, 16), test::many_kinds()}) {
    const KvGroups kv = test::groups(shape);
    const LengthMix mix = test::mix("33+200:3,700+28:1,1+1:2,100+900:5,64+64:0");
    const auto told = compare_reservations(mix, kv, 1500, kService).value();
    ASSERT_EQ(told.size(), 6u);
    double of_paged = 0;
    for (auto one = told.rbegin(); one != told.rend(); ++one) {
      double all = 0, used = 0, seconds = 0, end = 0, end_used = 0;
      for (const SequenceLength& length : mix.lengths) {
        each_token(length, [&](double time, std::uint64_t tokens) {
          all += length.weight * time * reserved(one->policy, kv, length, tokens, 1500);
          used += length.weight * time * bytes(kv, tokens);
          seconds += length.weight * time;
        });
        end += length.weight * reserved(one->policy, kv, length, length.length(), 1500);
        end_used += length.weight * bytes(kv, length.length());
      }
      if (one->policy == ReservationPolicy::paged) of_paged = all / seconds;
      EXPECT_NEAR(one->reserved_bytes / (all / seconds), 1, 1e-9) << to_string(one->policy);
      EXPECT_NEAR(*one->used_share, used / all, 1e-9) << to_string(one->policy);
      EXPECT_NEAR(one->end_waste_share, 1 - end_used / end, 1e-9) << to_string(one->policy);
      EXPECT_NEAR(one->concurrency, of_paged / (all / seconds), 1e-9) << to_string(one->policy);
      EXPECT_NEAR(*one->used_share + *one->unfilled_share + one->waste_share, 1, 1e-9);
    }
  }
}

// By hand: 96 + 32 tokens of 192 allowed, no time for the prompt: rows grow from 97 to 128, so 112.5 on average.
TEST(Reservation, OfOneSequenceByHand) {
  const KvGroups kv = test::groups(test::plain(4, 64, 4, 2, 16));
  const auto told = compare_reservations(test::mix("96+32:1"), kv, 192, {1e12, 1}).value();
  EXPECT_NEAR(*told[0].used_share, 112.5 / 192, 1e-9);
  EXPECT_NEAR(told[0].waste_share, 64.0 / 192, 1e-9);
  EXPECT_NEAR(*told[0].unfilled_share, 15.5 / 192, 1e-9);
  EXPECT_NEAR(told[0].concurrency, 128.0 / 192, 1e-9) << "blocks: the fourth is taken at once";
  EXPECT_NEAR(told[3].waste_share, 0, 1e-9) << "the exact length wastes nothing, but waits to be filled";
  EXPECT_NEAR(*told[3].unfilled_share, 15.5 / 128, 1e-9);
  EXPECT_NEAR(told[5].waste_share, 0, 1e-9);
}

TEST(Reservation, OfLengthsAloneIsThatOfTheEnd) {
  const KvGroups kv = test::groups(test::plain(4, 64, 4, 2, 16));
  const auto told = compare_reservations(test::mix("100:1,300:1"), kv, 1000, kService).value();
  ASSERT_EQ(told.size(), 5u) << "an answer's power of two needs the answer";
  for (const Reservation& one : told) {
    EXPECT_FALSE(one.used_share || one.unfilled_share);
    EXPECT_DOUBLE_EQ(one.waste_share, one.end_waste_share);
  }
  EXPECT_NEAR(told[0].waste_share, 1 - 400.0 / 2000, 1e-9);
  EXPECT_NEAR(told[1].waste_share, 1 - 400.0 / (128 + 512), 1e-9);
  EXPECT_NEAR(told[4].waste_share, 1 - 400.0 / (128 + 320), 1e-9);
  EXPECT_TRUE(compare_reservations(test::mix("100:1"), KvGroups{}, 1000, kService).value().empty())
      << "a model of states alone";
}

}  // namespace
}  // namespace kvasir::plan
