// Activations to 8-bit integers: the rounding by hand, and every class equal to the scalar twin.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/exact/exact.hpp"
#include "tests/kernels/support.hpp"

namespace kvasir::kernels::test {
namespace {

class QuantizeEveryClass : public EveryClass {};
KVASIR_FOR_EVERY_CLASS(QuantizeEveryClass);

// One block of one row, independent of the panel size.
struct Block {
  std::array<std::int8_t, kBlockInputs> q{};
  std::uint32_t d = 0, ds = 0;
  std::int32_t sum = 0, sum_low = 0;
  bool operator==(const Block&) const = default;
};
Block block_of(const Activations& a, std::size_t row, std::size_t block) {
  const std::size_t at = a.panels.block_index(row, block);
  Block b;
  std::copy_n(a.panels.q + at * kBlockInputs, kBlockInputs, b.q.begin());
  b.d = std::bit_cast<std::uint32_t>(a.panels.d[at]);
  b.ds = std::bit_cast<std::uint32_t>(a.panels.ds[at]);
  b.sum = a.panels.sum[at];
  b.sum_low = a.panels.sum_low[at];
  return b;
}

void expect_equal(const KernelSet& set, const std::vector<float>& x, std::size_t stride, std::size_t rows,
                  std::size_t k) {
  const Activations got = quantize(set, x.data(), stride, rows, k);
  const Activations wanted = quantize(exact_kernels(), x.data(), stride, rows, k);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t block = 0; block < k / kBlockInputs; ++block)
      ASSERT_EQ(block_of(got, row, block), block_of(wanted, row, block))
          << "row " << row << " of " << rows << ", block " << block;
}

TEST_P(QuantizeEveryClass, EqualsTheTwinForEveryRowCount) {
  for (std::size_t rows = 1; rows <= 67; ++rows) {
    const std::size_t k = 32 * (1 + rows % 5);
    const std::size_t stride = k + rows % 3;  // rows that start off a vector boundary
    Random random(rows);
    expect_equal(set(), random.normals(rows * stride, random.uniform(0.01f, 100)), stride, rows, k);
  }
}

TEST_P(QuantizeEveryClass, EqualsTheTwinOnZerosAndAtTheEndsOfTheRange) {
  const float largest = std::numeric_limits<float>::max();
  const float denormal = std::numeric_limits<float>::denorm_min();
  for (float scale :
       {0.0f, denormal, 1e-40f, 0x1p-127f, 0x1p-101f, 0x1p-100f, 0x1.8p-100f, 1e-20f, 1e20f, largest / 4}) {
    Random random(5);
    std::vector<float> x = random.normals(3 * 96, scale);
    x[7] = scale;  // the largest of its block, or near it
    x[40] = -0.0f;
    expect_equal(set(), x, 96, 3, 96);
  }
  std::vector<float> x(32, largest);
  x[3] = -largest;
  expect_equal(set(), x, 32, 1, 32);
}

// Values exactly between two codes: with a = 127 the codes are the values, halves go to the even neighbour.
TEST_P(QuantizeEveryClass, HalvesGoToTheEvenCode) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127;
  const std::pair<float, int> wanted[] = {{0.5f, 0},   {1.5f, 2},     {2.5f, 2},  {-0.5f, 0},  {-1.5f, -2},
                                          {-2.5f, -2}, {126.5f, 126}, {0.49f, 0}, {-0.51f, -1}};
  for (std::size_t i = 0; i < std::size(wanted); ++i) x[i + 1] = wanted[i].first;
  const Activations a = quantize(set(), x.data(), 32, 1, 32);
  EXPECT_EQ(a.panels.d[0], 1.0f);
  EXPECT_EQ(a.panels.q[0], 127);
  int sum = 127;
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    EXPECT_EQ(a.panels.q[i + 1], wanted[i].second) << wanted[i].first;
    sum += wanted[i].second;
  }
  EXPECT_EQ(a.panels.sum[0], sum);
  EXPECT_EQ(a.panels.ds[0], static_cast<float>(sum));
}

TEST_P(QuantizeEveryClass, WritesOnlyItsRows) {
  Random random(9);
  const std::size_t rows = 35, k = 64;
  const std::vector<float> x = random.normals(rows * k);
  const Activations all = quantize(set(), x.data(), k, rows, k);
  Activations parts = make_panels(set(), rows, k);
  set().quantize(x.data(), k, 13, 29, parts.panels);
  const Activations untouched = make_panels(set(), rows, k);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t block = 0; block < k / kBlockInputs; ++block)
      EXPECT_EQ(block_of(parts, row, block), block_of(row >= 13 && row < 29 ? all : untouched, row, block)) << row;
}

// |x - q d| <= d / 2, and what the roundings of 127 / a and x * inv add: three half-ulps of a value up to 127.
TEST_P(QuantizeEveryClass, ErrorIsHalfAStep) {
  Random random(21);
  const std::size_t k = 512;
  const std::vector<float> x = random.normals(k, 3);
  const Activations a = quantize(set(), x.data(), k, 1, k);
  for (std::size_t i = 0; i < k; ++i) {
    const double d = a.panels.d[i / 32];
    EXPECT_LE(std::fabs(double{x[i]} - a.panels.q[i] * d), d * (0.5 + 127 * 4 * 0x1p-24));
  }
}

}  // namespace
}  // namespace kvasir::kernels::test
