// Connections that have something to send, from the threads that produce to the I/O thread that sends: one wake-up for
// all that come together. A producer that knows of more to come holds the wake-up back, so that the I/O thread sends for
// a whole step's sequences in one go instead of running after the producer one by one.
// Thread rule: post(), hold() and release() any thread; take() and close() the I/O thread.
// Invariants: whatever was posted is followed by a wake-up, at the latest when the last hold is released.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kvasir::server {

class Connection;

class WakeList {
 public:
  // `wake` is called from any thread, under the lock, and only before close().
  explicit WakeList(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(std::weak_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    items_.push_back(std::move(connection));
    if (holds_ == 0) wake_once();
  }

  void hold() {
    const std::lock_guard lock(mutex_);
    ++holds_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    if (--holds_ == 0 && !items_.empty()) wake_once();
  }

  // Exchanges the posted ones for an empty vector, which keeps its memory.
  void take(std::vector<std::weak_ptr<Connection>>& into) {
    into.clear();
    const std::lock_guard lock(mutex_);
    std::swap(into, items_);
    woken_ = false;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    items_.clear();
  }

 private:
  void wake_once() {
    if (!std::exchange(woken_, true)) wake_();
  }

  std::mutex mutex_;
  const std::function<void()> wake_;
  std::vector<std::weak_ptr<Connection>> items_;
  int holds_ = 0;
  bool woken_ = false;   // a wake-up is on its way to take()
  bool closed_ = false;
};

}  // namespace kvasir::server
