// Work shared by the threads of a step: chunks of a range, handed out in order. Which thread takes a chunk never changes
// a bit, because every chunk writes outputs of its own.
// Thread rule: one region at a time; bodies run on the pool's threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "platform/thread_pool.hpp"

namespace kvasir::model {

// Calls body(begin, end, thread) over [0, count) in chunks of `chunk`. A range of one chunk runs on the caller alone:
// waking the pool would cost more than the work.
template <class Body>
void parallel_chunks(platform::ThreadPool& pool, std::size_t count, std::size_t chunk, Body&& body) {
  if (count == 0) return;
  if (count <= chunk || pool.threads() == 1) {
    for (std::size_t begin = 0; begin < count; begin += chunk) body(begin, std::min(count, begin + chunk), std::size_t{0});
    return;
  }
  std::atomic<std::size_t> next{0};
  pool.run([&](std::size_t thread) {
    for (;;) {
      const std::size_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(count, begin + chunk), thread);
    }
  });
}

}  // namespace kvasir::model
