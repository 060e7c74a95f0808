#include "server/published.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace kvasir::server {
namespace {

using Words = std::array<std::uint64_t, 40>;

TEST(Published, ReadersNeverSeeHalfOfAValue) {
  Published<Words> published;
  constexpr std::uint64_t kValues = 20'000;
  std::atomic<int> readers_up{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      ++readers_up;
      std::uint64_t last = 0;
      while (last < kValues) {
        const Words words = published.read();
        for (const std::uint64_t word : words) ASSERT_EQ(word, words[0]);
        ASSERT_GE(words[0], last);
        last = words[0];
        std::this_thread::yield();
      }
    });
  }
  while (readers_up < 2) std::this_thread::yield();
  for (std::uint64_t value = 1; value <= kValues; ++value) {
    Words words;
    words.fill(value);
    published.publish(words);
  }
  for (std::thread& reader : readers) reader.join();
}

TEST(Published, OddSizesComeBackWhole) {
  struct Odd {
    std::uint32_t a = 7;
    std::uint8_t b = 3;
    std::array<std::uint8_t, 8> c{};
  };
  Published<Odd> published;
  EXPECT_EQ(published.read().a, 7u);
  Odd odd;
  odd.c[7] = 9;
  published.publish(odd);
  EXPECT_EQ(published.read().c[7], 9);
}

}  // namespace
}  // namespace kvasir::server
