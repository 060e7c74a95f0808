#include "engine/row_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/fixed_math.hpp"
#include "base/prng.hpp"
#include "platform/isa.hpp"

namespace kvasir::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t size, std::uint64_t seed, float scale) {
  PhiloxSequence random(seed);
  std::vector<float> row(size);
  for (float& x : row) x = (random.uniform() - 0.5f) * 2 * scale;
  return row;
}

RowMax max_of(const std::vector<float>& row) {
  std::vector<float> blocks(row_blocks(row.size()));
  return row_max(row, blocks);
}

TEST(RowMax, EqualsTheFirstMaximumForEverySize) {
  for (std::size_t size = 1; size < 1200; size += 1 + size / 7) {
    std::vector<float> row = random_row(size, size, 3.0f);
    for (float& x : row) x = std::round(x);   // many ties
    std::size_t best = 0;
    for (std::size_t i = 1; i < size; ++i) best = row[i] > row[best] ? i : best;
    const RowMax found = max_of(row);
    EXPECT_EQ(static_cast<std::size_t>(found.token), best) << "size " << size;
    EXPECT_EQ(found.value, row[best]);
  }
}

TEST(RowMax, NanAndMinusInfinityNeverWin) {
  std::vector<float> row(700, -kInf);
  row[3] = kNan;
  row[699] = -1e30f;
  EXPECT_EQ(max_of(row).token, 699);
  EXPECT_EQ(max_of({kNan, kNan}).token, 0);
  EXPECT_EQ(max_of({-kInf, -kInf}).token, 0);
  EXPECT_EQ(max_of({0.0f, kInf, kInf}).token, 1);
}

TEST(RowMax, ZeroOfEitherSignTies) { EXPECT_EQ(max_of({-1.0f, -0.0f, 0.0f}).token, 1); }

// The tree as the header states it, written out naively.
double sum_by_the_book(const std::vector<float>& row, float max, float scale) {
  double total = 0;
  for (std::size_t begin = 0; begin < row.size(); begin += 256) {
    float lane[16] = {};
    for (std::size_t i = begin; i < std::min(row.size(), begin + 256); ++i) {
      lane[i % 16] += exp_f32((row[i] - max) * scale);
    }
    for (const std::size_t width : {8u, 4u, 2u, 1u}) {
      for (std::size_t j = 0; j < width; ++j) lane[j] += lane[j + width];
    }
    total += static_cast<double>(lane[0]);
  }
  return total;
}

TEST(SumExp, TheSameBitsInEveryClass) {
  for (const std::size_t size : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 1000u, 49'152u}) {
    std::vector<float> row = random_row(size, size, 40.0f);
    if (size > 20) row[11] = kNan;
    const float max = max_of(row).value;
    for (const float scale : {1.0f, 0.37f, 5.0f}) {
      const double expected = sum_by_the_book(row, max, scale);
      for (const platform::Isa isa : platform::available_isas()) {
        EXPECT_EQ(sum_exp(row, max, scale, isa), expected) << size << " " << platform::to_string(isa);
      }
    }
  }
}

TEST(SumExp, IsCloseToTheTrueSum) {
  const std::vector<float> row = random_row(49'152, 5, 12.0f);
  const float max = max_of(row).value;
  long double exact = 0;
  for (const float x : row) exact += std::exp(static_cast<long double>(x - max));
  EXPECT_NEAR(sum_exp(row, max, 1.0f, platform::Isa::scalar) / static_cast<double>(exact), 1.0, 2e-6);
}

TEST(LogProbability, OfAUniformRow) {
  const std::vector<float> row(1000, 2.5f);
  const double sum = sum_exp(row, 2.5f, 1.0f, platform::Isa::scalar);
  EXPECT_NEAR(log_probability(2.5f, 2.5f, sum), -std::log(1000.0), 1e-12);
  EXPECT_EQ(log_probability(0, 0, 0), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace kvasir::engine
