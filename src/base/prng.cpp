#include "base/prng.hpp"

#include "base/check.hpp"

namespace kvasir {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
constexpr int kRounds = 10;

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox4x32(const PhiloxCounter& counter, const PhiloxKey& key) {
  std::array<std::uint32_t, 4> c = counter;
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0];
    const std::uint64_t p1 = std::uint64_t{kMultiplier1} * c[2];
    c = {high(p1) ^ c[1] ^ k0, low(p1), high(p0) ^ c[3] ^ k1, low(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

std::uint32_t PhiloxSequence::next() {
  const std::uint64_t block = drawn_ / 4;
  if (drawn_ % 4 == 0) block_ = philox4x32({low(block), high(block), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  return block_[drawn_++ % 4];
}

std::uint32_t PhiloxSequence::below(std::uint32_t bound) {
  KV_CHECK(bound > 0, "a bound is positive");
  const std::uint32_t uneven = (0u - bound) % bound;  // 2^32 mod bound: so many words would favour the small results
  for (;;) {
    const std::uint64_t scaled = std::uint64_t{next()} * bound;
    if (low(scaled) >= uneven) return high(scaled);
  }
}

}  // namespace kvasir
