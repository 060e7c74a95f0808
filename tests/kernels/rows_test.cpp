// Kernels over one row: norm, gated silu, encoding of K and V, rotation.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/exact/exact.hpp"
#include "kernels/exact/lanes.hpp"
#include "kernels/reference/reference.hpp"
#include "tests/kernels/support.hpp"

namespace kvasir::kernels::test {
namespace {

constexpr double kUnit = 0x1p-24;  // half an ulp of 1
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RowsEveryClass : public EveryClass {};
KVASIR_FOR_EVERY_CLASS(RowsEveryClass);

constexpr std::size_t kLengths[] = {1, 7, 8, 15, 16, 17, 24, 31, 32, 33, 100, 576, 896, 1000};

TEST(Lanes, SumRunsInTheTreesOrder) {
  // Each pair of the first fold cancels a large value; any other order loses the small ones.
  exact::LaneSum sum;
  for (std::size_t i = 0; i < 16; ++i) sum.add(i, i < 8 ? 1e8f : -1e8f + 8 * static_cast<float>(i - 7));
  EXPECT_EQ(sum.total(), 8.0f * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8));
}

TEST(Lanes, MaxOfNothingIsMinusInfinity) { EXPECT_EQ(exact::LaneMax().total(), -kInfinity); }

TEST_P(RowsEveryClass, RmsNormEqualsTheTwinOutOfPlaceAndInPlace) {
  for (std::size_t n : kLengths) {
    Random random(n);
    const std::vector<float> x = random.normals(n, 4), weight = random.normals(n);
    std::vector<float> got(n + 1, 5.0f), wanted(n + 1, 5.0f), in_place = x;
    set().rms_norm(x.data(), weight.data(), n, 1e-5f, got.data());
    exact::rms_norm(x.data(), weight.data(), n, 1e-5f, wanted.data());
    const Comparison c = compare(got, wanted);
    ASSERT_TRUE(c) << "n " << n << ": " << c.message;
    set().rms_norm(in_place.data(), weight.data(), n, 1e-5f, in_place.data());
    const Comparison d = compare(in_place, std::span(wanted).first(n));
    ASSERT_TRUE(d) << "in place, n " << n << ": " << d.message;
  }
}

// Relative error of r: half of what the mean is off by (n/16 fused steps, 4 folds, the division, epsilon), then root
// and reciprocal; two more products.
TEST_P(RowsEveryClass, RmsNormIsAccurate) {
  for (std::size_t n : kLengths) {
    Random random(n + 50);
    const std::vector<float> x = random.normals(n, 4), weight = random.normals(n);
    std::vector<float> got(n);
    std::vector<double> wanted(n);
    set().rms_norm(x.data(), weight.data(), n, 1e-5f, got.data());
    reference::rms_norm(x.data(), weight.data(), n, double{1e-5f}, wanted.data());
    const double relative = ((static_cast<double>(n / 16 + 1) + 4 + 2) / 2 + 4) * kUnit * 1.01;
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_LE(std::fabs(got[i] - wanted[i]), relative * std::fabs(wanted[i])) << "n " << n;
  }
}

// Both gatings: the kernel of a class, and its twin.
struct Gating {
  void (*KernelSet::*kernel)(float*, const float*, std::size_t);
  void (*twin)(float*, const float*, std::size_t);
};
constexpr Gating kGatings[] = {{&KernelSet::silu_mul, exact::silu_mul}, {&KernelSet::gelu_mul, exact::gelu_mul}};

TEST_P(RowsEveryClass, GatingEqualsTheTwin) {
  for (const Gating& gating : kGatings)
    for (std::size_t n : kLengths) {
      Random random(n);
      std::vector<float> got = random.normals(n, 8), up = random.normals(n), wanted = got;
      (set().*gating.kernel)(got.data(), up.data(), n);
      gating.twin(wanted.data(), up.data(), n);
      const Comparison c = compare(got, wanted);
      ASSERT_TRUE(c) << "n " << n << ": " << c.message;
    }
}

TEST_P(RowsEveryClass, GatingEqualsTheTwinAtTheEndsOfExp) {
  std::vector<float> gate = {0.0f,
                             -0.0f,
                             87.0f,
                             -87.0f,
                             88.0f,
                             -88.0f,
                             87.00001f,
                             -88.00001f,
                             1e30f,
                             -1e30f,
                             kInfinity,
                             -kInfinity,
                             1e-30f,
                             -1e-45f,
                             std::nextafter(87.0f, 0.0f),
                             std::nextafter(87.0f, 100.0f),
                             std::nextafter(-88.0f, -100.0f)};
  for (float x = -100; x < 100; x += 0.37f) gate.push_back(x);
  const std::vector<float> up(gate.size(), 1.5f);
  for (const Gating& gating : kGatings) {
    std::vector<float> got = gate, wanted = gate;
    (set().*gating.kernel)(got.data(), up.data(), gate.size());
    gating.twin(wanted.data(), up.data(), gate.size());
    const Comparison c = compare(got, wanted);
    ASSERT_TRUE(c) << c.message;
  }
}

// exp within one ulp (2 units), then add, divide, multiply; beyond exp's range e^-87 of the gate.
TEST_P(RowsEveryClass, SiluMulIsAccurate) {
  for (float x = -120; x < 120; x += 0.173f) {
    float gate = x;
    const float up = 0.7f;
    set().silu_mul(&gate, &up, 1);
    const double wanted = reference::silu_mul(double{x}, double{up});
    EXPECT_LE(std::fabs(double{gate} - wanted), 5.01 * kUnit * std::fabs(wanted) + std::fabs(x) * std::exp(-87.0)) << x;
  }
}

// As silu, and three roundings of the exponent -2z (a square's, a product's and a fused step's), which the exponential makes
// relative errors of |2z| units each; the constants are rounded too.
TEST_P(RowsEveryClass, GeluMulIsAccurate) {
  for (float x = -30; x < 30; x += 0.0173f) {
    float gate = x;
    const float up = 0.7f;
    set().gelu_mul(&gate, &up, 1);
    const double wanted = reference::gelu_mul(double{x}, double{up});
    const double z2 = 1.6 * std::fabs(x) * (1 + 0.0448 * double{x} * double{x});
    EXPECT_LE(std::fabs(double{gate} - wanted), (5.01 + 5 * z2) * kUnit * std::fabs(wanted) + std::fabs(x) * std::exp(-87.0)) << x;
  }
}

// ---- K and V to their stored form

constexpr format::KvType kTypes[] = {format::KvType::f32, format::KvType::f16, format::KvType::bf16};

void expect_stored_equal(const KernelSet& set, const std::vector<float>& k, const std::vector<float>& v,
                         format::KvFormat format) {
  const std::size_t head_dim = k.size();
  const std::size_t k_bytes = head_dim * format::kKeysPerTile * format::element_bytes(format.k);
  const std::size_t v_bytes = head_dim * format::element_bytes(format.v) + 64;
  std::vector<std::byte> k_got(k_bytes, std::byte{0x5a}), k_wanted = k_got, v_got(v_bytes, std::byte{0x5a}),
                                                          v_wanted = v_got;
  const std::size_t slot = 3 * format::element_bytes(format.k);  // the fourth key of the tile
  set.store_kv(k.data(), v.data(), head_dim, format, k_got.data() + slot, v_got.data());
  exact::store_kv(k.data(), v.data(), head_dim, format, k_wanted.data() + slot, v_wanted.data());
  ASSERT_EQ(k_got, k_wanted) << format::to_string(format.k) << " head_dim " << head_dim;
  ASSERT_EQ(v_got, v_wanted) << format::to_string(format.v) << " head_dim " << head_dim;
}

TEST_P(RowsEveryClass, StoreKvEqualsTheTwinInEveryFormat) {
  for (format::KvType k_type : kTypes)
    for (format::KvType v_type : kTypes)
      for (std::size_t head_dim : {8, 16, 24, 40, 64, 80, 96, 128, 256}) {
        Random random(head_dim);
        const std::vector<float> k = random.normals(head_dim), v = random.normals(head_dim, 100);
        expect_stored_equal(set(), k, v, {.k = k_type, .v = v_type});
        if (HasFatalFailure()) return;
      }
}

// Every exponent, halves that must go to even, overflow, subnormals, infinities, NaN with a payload.
TEST_P(RowsEveryClass, StoreKvEqualsTheTwinOnEveryKindOfFloat) {
  std::vector<float> values = {65504.0f,
                               65519.99f,
                               65520.0f,
                               -65520.0f,
                               1e30f,
                               kInfinity,
                               -kInfinity,
                               0.0f,
                               -0.0f,
                               0x1p-24f,
                               0x1p-25f,
                               0x1.8p-24f,
                               0x1.000002p-25f,
                               0x1.ffep-15f,
                               0x1.fffp-15f,
                               1.00048828125f,
                               1.00146484375f,
                               std::bit_cast<float>(0x7fc01234u),
                               std::bit_cast<float>(0xff800001u),
                               std::bit_cast<float>(0x7fbfffffu)};
  Random random(77);
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (int i = 0; i < 8; ++i)
      values.push_back(std::bit_cast<float>(exponent << 23 | static_cast<std::uint32_t>(random.next() & 0x807fffffu)));
  for (std::uint32_t exponent = 100; exponent < 145; ++exponent)
    for (std::uint32_t kept : {0u, 1u, 2u, 0x3ffu}) {  // exact halves of f16 and of bf16, and their neighbours
      const std::uint32_t base = exponent << 23 | kept << 13;
      for (std::uint32_t rest : {0x0fffu, 0x1000u, 0x1001u, 0x8000u, 0x18000u})
        values.push_back(std::bit_cast<float>(base + rest));
    }
  while (values.size() % 8 != 0) values.push_back(1.0f);
  for (format::KvType type : kTypes) expect_stored_equal(set(), values, values, {.k = type, .v = type});
}

// ---- rotation

TEST(Rope, IsARotationInBothPairings) {
  for (std::size_t dim : {8, 64, 80, 128}) {
    Random random(dim);
    const std::vector<float> head = random.normals(dim);
    std::vector<float> cosines, sines, halves = head, interleaved(dim), from_halves(dim);
    for (std::size_t i = 0; i < dim / 2; ++i) {
      const double angle = double{random.uniform(-3, 3)};
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
      interleaved[2 * i] = head[i];
      interleaved[2 * i + 1] = head[i + dim / 2];
    }
    rope_halves(halves.data(), dim, cosines.data(), sines.data());
    rope_interleaved(interleaved.data(), dim, cosines.data(), sines.data());
    for (std::size_t i = 0; i < dim / 2; ++i) {
      const double a = head[i], b = head[i + dim / 2], c = cosines[i], s = sines[i];
      const double bound = 2 * kUnit * (std::fabs(a) + std::fabs(b)) * 1.01;  // two products and a sum, |c|, |s| <= 1
      EXPECT_LE(std::fabs(double{halves[i]} - (a * c - b * s)), bound);
      EXPECT_LE(std::fabs(double{halves[i + dim / 2]} - (a * s + b * c)), bound);
      from_halves[2 * i] = halves[i];
      from_halves[2 * i + 1] = halves[i + dim / 2];
    }
    const Comparison same = compare(interleaved, from_halves);
    EXPECT_TRUE(same) << same.message;
  }
}

}  // namespace
}  // namespace kvasir::kernels::test
