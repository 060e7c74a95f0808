#include "platform/thread_pool.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "platform/thread_name.hpp"

namespace kvasir::platform {
namespace {

constexpr int kSpinsBeforeSleep = 20'000;  // about 0.3 ms: longer than the serial parts between two regions of a step

void relax() { __builtin_ia32_pause(); }

}  // namespace

// Conservation: each run() raises `generation` by one and waits until `remaining` workers have come home.
struct ThreadPool::State {
  alignas(64) std::atomic<std::size_t> generation{0};
  alignas(64) std::atomic<std::size_t> remaining{0};
  std::atomic<std::size_t> sleepers{0};
  std::atomic<bool> stop{false};
  void (*body)(void*, std::size_t) = nullptr;
  void* context = nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;
  int spins = kSpinsBeforeSleep;

  // Returns once `generation` differs from `seen`.
  void wait_for_work(std::size_t seen) {
    for (int spin = 0; spin < spins; ++spin) {
      if (generation.load(std::memory_order_acquire) != seen) return;
      relax();
    }
    std::unique_lock lock(mutex);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    wake.wait(lock, [&] { return generation.load(std::memory_order_seq_cst) != seen; });
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  void publish() {
    generation.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    const std::lock_guard lock(mutex);
    wake.notify_all();
  }

  void work(std::size_t thread) {
    name_this_thread("kv-pool");
    for (std::size_t seen = 0;;) {
      wait_for_work(seen);
      ++seen;
      if (stop.load(std::memory_order_acquire)) return;
      body(context, thread);
      remaining.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  KV_CHECK(threads >= 1, "a thread pool has at least its caller");
  if (threads > std::thread::hardware_concurrency()) state_->spins = 0;   // who spins keeps another from its core
  for (std::size_t t = 1; t < threads; ++t) state_->workers.emplace_back([this, t] { state_->work(t); });
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_release);
  state_->publish();
  for (std::thread& worker : state_->workers) worker.join();
}

std::size_t ThreadPool::threads() const { return state_->workers.size() + 1; }

void ThreadPool::run(void (*body)(void*, std::size_t), void* context) {
  State& s = *state_;
  if (s.workers.empty()) return body(context, 0);
  s.body = body;
  s.context = context;
  s.remaining.store(s.workers.size(), std::memory_order_relaxed);
  s.publish();
  body(context, 0);
  for (int spin = 0; s.remaining.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < s.spins) relax();
    else std::this_thread::yield();   // a worker has lost its core: let it have this one
  }
}

}  // namespace kvasir::platform
