// Counter-based random numbers: Philox4x32-10. A pure function of (counter, key), so a draw is named by what it is for
// (seed, choice, position) and is the same whatever was drawn before it, in whatever order and on whatever machine.
// Thread rule: pure functions any thread; a sequence belongs to one thread.
// Source: Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace kvasir {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Four independent uniform 32-bit words.
std::array<std::uint32_t, 4> philox4x32(const PhiloxCounter& counter, const PhiloxKey& key);

// The upper 24 bits times 2^-24: multiples of 2^-24 in [0, 1), each exact in a float and equally likely.
constexpr float uniform01(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// The words of one (seed, stream) in order: word i is word i % 4 of the counter {i / 4 (64 bits), stream (64 bits)}
// under the key `seed`, low half first each.
class PhiloxSequence {
 public:
  explicit PhiloxSequence(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t next();
  float uniform() { return uniform01(next()); }
  // Uniform in [0, bound), without bias. REQUIRES: bound > 0.
  std::uint32_t below(std::uint32_t bound);

 private:
  std::uint64_t seed_ = 0;
  std::uint64_t stream_ = 0;
  std::uint64_t drawn_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace kvasir
