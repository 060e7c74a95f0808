// Counts heap allocations of a test binary. Replaces the global operator new: include it in exactly one file of a
// binary. Thread rule: counters are atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace kvasir::test {

// The instrumented builds leave allocations out whose memory nobody reads, so exact counts are not theirs to check.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAreExact = false;
#else
inline constexpr bool kCountsAreExact = true;
#endif

struct Allocations {
  std::uint64_t count = 0, bytes = 0;
};

inline std::atomic<std::uint64_t> g_allocation_count{0}, g_allocation_bytes{0};

inline Allocations allocations() { return {g_allocation_count.load(), g_allocation_bytes.load()}; }

// What `body` allocated.
template <class Body>
Allocations allocations_of(Body&& body) {
  const Allocations before = allocations();
  body();
  const Allocations after = allocations();
  return {after.count - before.count, after.bytes - before.bytes};
}

}  // namespace kvasir::test

// Not inlined: the compiler would take the malloc and free inside for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++kvasir::test::g_allocation_count;
  kvasir::test::g_allocation_bytes += bytes;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
