// A pool that runs one region at a time on all its threads, with spinning hand-over: an empty region costs well under a
// microsecond, which a decode step of two hundred regions needs. Threads that find no work for a while sleep.
// Thread rule: one caller at a time; the caller is thread 0 of the region.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace kvasir::platform {

class ThreadPool {
 public:
  // threads >= 1, the caller included.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const;

  // Calls body(context, thread) once on every thread and returns when all are done. Allocates nothing.
  void run(void (*body)(void* context, std::size_t thread), void* context);

  // The same for a callable: fn(thread).
  template <class Fn>
  void run(Fn&& fn) {
    run([](void* context, std::size_t thread) { (*static_cast<std::remove_reference_t<Fn>*>(context))(thread); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The half-open part of [0, count) that `thread` of `threads` gets: contiguous, sizes differ by at most one.
struct Range {
  std::size_t begin = 0, end = 0;
};
constexpr Range part(std::size_t count, std::size_t thread, std::size_t threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

}  // namespace kvasir::platform
