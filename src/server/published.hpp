// A value that one thread publishes and any others read, without a lock on the writer's side: a sequence lock.
//
// Thread rule: publish() from one thread; read() from any. publish() never waits; read() repeats when overtaken.
// How: the count is odd while words change. Words are stored with release and loaded with acquire, so a reader that saw
// any new word sees a count that has moved, and reads again.
// Source: Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kvasir::server {

template <class T>
class Published {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Published() { publish(T{}); }

  void publish(const T& value) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof(T));
    const std::uint64_t count = count_.load(std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    count_.store(count + 2, std::memory_order_release);
  }

  T read() const {
    std::array<std::uint64_t, kWords> words;
    for (;;) {
      const std::uint64_t before = count_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (before % 2 == 0 && count_.load(std::memory_order_relaxed) == before) break;
    }
    T value;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
    return value;
  }

 private:
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  std::atomic<std::uint64_t> count_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace kvasir::server
