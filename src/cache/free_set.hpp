// A set of small integers with "lowest member" in O(log64 n): the free blocks of a pool.
// Thread rule: one owner. Allocates at construction only.
// Invariant: bit i of a level is set if and only if word i of the level below it is not zero.
#pragma once

#include <cstdint>
#include <vector>

namespace kvasir::cache {

class FreeSet {
 public:
  // All of 0 .. size-1 are members. REQUIRES: size >= 1.
  explicit FreeSet(std::uint32_t size);

  bool contains(std::uint32_t member) const { return (levels_[0][member / 64] >> (member % 64)) & 1u; }
  // REQUIRES: not a member / a member.
  void insert(std::uint32_t member);
  void erase(std::uint32_t member);
  // REQUIRES: not empty.
  std::uint32_t lowest() const;
  bool empty() const { return levels_.back()[0] == 0; }

  // Aborts unless every level agrees with the one below it.
  void check_invariants() const;

  // Heap bytes of a set of `size`.
  static std::uint64_t bytes(std::uint32_t size);

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // [0] = one bit a member; the last level is one word
};

}  // namespace kvasir::cache
