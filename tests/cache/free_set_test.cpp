#include "cache/free_set.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/prng.hpp"

namespace kvasir::cache {
namespace {

TEST(FreeSet, LowestAgreesWithAnOrderedSet) {
  for (const std::uint32_t size : {1u, 2u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 300'000u}) {
    FreeSet set(size);
    std::set<std::uint32_t> twin;
    for (std::uint32_t i = 0; i < size; ++i) twin.insert(twin.end(), i);
    PhiloxSequence random(1, size);
    for (int step = 0; step < 2000; ++step) {
      const std::uint32_t member = random.below(4) == 0 && !twin.empty() ? *twin.begin() : random.below(size);
      ASSERT_EQ(set.contains(member), twin.contains(member));
      if (twin.contains(member)) {
        set.erase(member);
        twin.erase(member);
      } else {
        set.insert(member);
        twin.insert(member);
      }
      ASSERT_EQ(set.empty(), twin.empty());
      if (!twin.empty()) {
        ASSERT_EQ(set.lowest(), *twin.begin()) << "size " << size << " step " << step;
      }
    }
    set.check_invariants();
  }
}

TEST(FreeSet, LowestFromAgreesWithAnOrderedSet) {
  for (const std::uint32_t size : {1u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    FreeSet set(size, false);
    std::set<std::uint32_t> twin;
    PhiloxSequence random(2, size);
    EXPECT_EQ(set.lowest_from(0), std::nullopt);
    for (int step = 0; step < 500; ++step) {
      const std::uint32_t member = random.below(size);
      if (twin.insert(member).second) set.insert(member);
      else twin.erase(member), set.erase(member);
      for (const std::uint32_t from : {random.below(size), member, size - 1}) {
        const auto expected = twin.lower_bound(from);
        const std::optional<std::uint32_t> found = set.lowest_from(from);
        ASSERT_EQ(found.has_value(), expected != twin.end()) << "size " << size << " from " << from;
        if (found) {
          ASSERT_EQ(*found, *expected);
        }
      }
    }
    set.check_invariants();
  }
}

TEST(FreeSet, DrainsInOrder) {
  FreeSet set(5000);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(set.lowest(), i);
    set.erase(i);
  }
  EXPECT_TRUE(set.empty());
  EXPECT_DEATH(static_cast<void>(set.lowest()), "empty set");
}

TEST(FreeSet, MisuseAborts) {
  FreeSet set(70);
  EXPECT_DEATH(set.insert(3), "twice");
  set.erase(3);
  EXPECT_DEATH(set.erase(3), "not a member");
  EXPECT_DEATH(set.erase(70), "not a member");
}

}  // namespace
}  // namespace kvasir::cache
