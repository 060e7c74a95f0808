// A set of small integers with "lowest member" and "lowest from here" in O(log64 n): the free blocks of a pool.
// Thread rule: one owner. Allocates at construction only.
// Invariant: bit i of a level is set if and only if word i of the level below it is not zero.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvasir::cache {

class FreeSet {
 public:
  // All of 0 .. size-1 are members, or none. REQUIRES: size >= 1.
  explicit FreeSet(std::uint32_t size, bool full = true);

  bool contains(std::uint32_t member) const { return (words_[member / 64] >> (member % 64)) & 1u; }
  bool empty() const { return words_.back() == 0; }
  // REQUIRES: not a member / a member.
  void insert(std::uint32_t member);
  void erase(std::uint32_t member);
  // REQUIRES: not empty.
  std::uint32_t lowest() const;
  // The lowest member that is not below `first`; nothing if there is none.
  std::optional<std::uint32_t> lowest_from(std::uint32_t first) const;

  // Aborts unless every level agrees with the one below it.
  void check_invariants() const;

  // Heap bytes of a set of `size`.
  static std::uint64_t bytes(std::uint32_t size);

 private:
  static constexpr std::uint32_t kMaxLevels = 6;  // 64^6 > 2^32

  std::uint32_t words_of(std::uint32_t level) const;
  // The lowest member below bit `index` of level `level`, which is set.
  std::uint32_t descend(std::uint32_t level, std::uint32_t index) const;

  std::uint32_t size_;
  std::uint32_t levels_ = 0;
  std::array<std::uint32_t, kMaxLevels> start_{};  // of each level in words_; level 0 has one bit a member
  std::vector<std::uint64_t> words_;               // the last level is one word, the last of all
};

}  // namespace kvasir::cache
