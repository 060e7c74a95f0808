// How many sequences of a mix fit: sums over sequences, and the tail of their draws.
#include "plan/mix_capacity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/plan/mixes.hpp"
#include "tests/plan/plan_input.hpp"

namespace kvasir::plan {
namespace {

std::uint64_t bytes_of(const HeldRows& held, const KvGroups& kv) {
  std::uint64_t sum = 0;
  for (std::size_t g = 0; g < kv.groups.size(); ++g) sum += held.blocks[g] * kv.groups[g].layout.block_bytes();
  return sum;
}

MixCapacity capacity(const LengthMix& mix, const KvGroups& kv) { return MixCapacity::create(mix, kv, 1).value(); }

PlanInput input_of(const artifact::ModelShape& shape, std::uint64_t length) { return test::input_of(shape, 1, length); }

TEST(MixCapacity, IsTheSumOverSequences) {
  const KvGroups kv = test::groups(test::many_kinds());
  const std::uint64_t lengths[] = {1, 33, 257, 1000, 5000}, weights[] = {3, 1, 4, 1, 5};
  LengthMix mix;
  std::uint64_t bytes = 0, payload = 0, count = 0;
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    mix.lengths.push_back({lengths[i], 0, static_cast<double>(weights[i])});
    bytes += 7 * weights[i] * kv.block_bytes(lengths[i]).value();
    payload += 7 * weights[i] * kv.payload_bytes(lengths[i]).value();
    count += 7 * weights[i];
  }
  const HeldRows held = capacity(mix, kv).expected(count).value();
  EXPECT_EQ(bytes_of(held, kv), bytes);
  EXPECT_EQ(held.payload_bytes, payload);
  EXPECT_NEAR(capacity(mix, kv).mean_block_bytes() * static_cast<double>(count), static_cast<double>(bytes),
              1e-9 * static_cast<double>(bytes));
}

// A mix of one length is the plain plan: the same total, the same number that fits, and no tail.
TEST(MixCapacity, OfOneLengthIsThePlainPlan) {
  const artifact::ModelShape shape = test::many_kinds();
  const KvGroups kv = test::groups(shape);
  PlanInput input = input_of(shape, 777);
  MixCapacity mix = capacity(test::mix("777:3"), kv);
  input.requests = 50;
  const CapacityPlan plain = plan_capacity(input).value();
  input.held = mix.expected(50).value();
  const CapacityPlan mixed = plan_capacity(input).value();
  EXPECT_EQ(mixed.total_bytes, plain.total_bytes);
  EXPECT_EQ(mixed.kv_bytes, plain.kv_bytes);
  EXPECT_EQ(mixed.kv_payload_bytes, plain.kv_payload_bytes);
  const std::uint64_t memory = 1ull << 30, most = most_requests(input_of(shape, 777), memory).value();
  EXPECT_GT(most, 10u);
  EXPECT_EQ(most_expected(input, mix, memory).value(), most);
  EXPECT_EQ(most_guaranteed(input, mix, memory).value(), most);
}

// The number that fits fits, and one more does not.
TEST(MixCapacity, TheLargestNumberIsTheLargest) {
  const artifact::ModelShape shape = test::llama3_70b();
  MixCapacity mix = capacity(test::mix("400:5,9000:2,100000:1"), test::groups(shape));
  PlanInput input = input_of(shape, 100'000);
  for (const std::uint64_t memory : {20ull << 30, 300ull << 30, 9'000ull << 30, 40'000ull << 30}) {
    const std::uint64_t most = most_guaranteed(input, mix, memory).value();
    EXPECT_LE(most, most_expected(input, mix, memory).value());
    for (const std::uint64_t tried : {most, most + 1}) {
      if (tried == 0) continue;
      input.requests = tried;
      input.held = mix.guaranteed(tried).value();
      EXPECT_EQ(plan_fits(input, memory).value(), tried == most) << memory << " " << tried;
    }
  }
  EXPECT_EQ(most_expected(input, mix, 1000).value(), 0u);
}

// Beside draws by another generator.
TEST(MixCapacity, TheTailIsThatOfDraws) {
  const KvGroups kv = test::groups(test::llama2_7b());
  const LengthMix mix = test::mix("200:60,1000:30,12000:10");
  MixCapacity drawn = capacity(mix, kv);
  std::mt19937_64 random(5);
  std::discrete_distribution<int> which({60, 30, 10});
  for (const std::uint64_t count : {1ull, 3ull, 40ull, 1000ull, 1500ull}) {
    std::vector<double> each, sums(10'000);
    for (const SequenceLength& one : mix.lengths)
      each.push_back(static_cast<double>(kv.block_bytes(one.length()).value()));
    for (double& sum : sums) {
      for (std::uint64_t i = 0; i < count; ++i) sum += each[which(random)];
    }
    std::sort(sums.begin(), sums.end());
    const double expected = sums[9'899], told = static_cast<double>(bytes_of(drawn.guaranteed(count).value(), kv));
    EXPECT_NEAR(told / expected, 1, count == 1 || count >= 1000 ? 0.01 : 0.08) << count;
    EXPECT_GT(told, static_cast<double>(bytes_of(drawn.expected(count).value(), kv)));
  }
}

// Draws and moments meet where one takes over from the other, and the tail never shrinks with the number.
TEST(MixCapacity, DrawsAndMomentsMeet) {
  const KvGroups kv = test::groups(test::llama2_7b());
  MixCapacity mix = capacity(test::mix("p50=800,p90=2000,p99=8000,max=16000"), kv);
  const auto tail = [&](std::uint64_t count) {
    return static_cast<double>(bytes_of(mix.guaranteed(count).value(), kv));
  };
  EXPECT_NEAR(tail(MixCapacity::kDrawnSequences + 1) / tail(MixCapacity::kDrawnSequences), 1, 0.02)
      << "1,000 draws leave about 0.5 %";
  for (std::uint64_t count = 1; count < 1024; ++count) ASSERT_LE(tail(count), tail(count + 1)) << count;
  EXPECT_EQ(tail(700), static_cast<double>(bytes_of(
                           capacity(test::mix("p50=800,p90=2000,p99=8000,max=16000"), kv).guaranteed(700).value(), kv)))
      << "the same seed draws the same";
}

TEST(MixCapacity, SizesThatOverflowAreRefused) {
  artifact::ModelShape shape = test::plain(4096, 1 << 14, 1024, 1024, 4096);
  const Result<MixCapacity> huge = MixCapacity::create(test::mix("2000000000:1"), test::groups(shape), 1);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, ErrorCode::bad_input);
  const MixCapacity large = capacity(test::mix("1000:1"), test::groups(shape));
  EXPECT_TRUE(large.expected(1000).ok());
  EXPECT_FALSE(large.expected(1ull << 40).ok()) << "a sum that no number holds";
}

TEST(WeightedDraw, DrawsByWeight) {
  const double weights[] = {0, 1, 0, 2, 5, 0};
  const WeightedDraw draw(weights);
  PhiloxSequence draws(3);
  double counts[6] = {};
  for (int i = 0; i < 80'000; ++i) ++counts[draw.draw(draws)];
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(counts[i], weights[i] * 10'000, 5 * std::sqrt(weights[i] * 10'000)) << i;
}

}  // namespace
}  // namespace kvasir::plan
