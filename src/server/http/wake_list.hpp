// Connections that have something to send, from the threads that produce to the I/O thread that sends: one wake-up for
// all that come together, so that a step of 32 sequences costs one.
// Thread rule: post() any thread; take() and close() the I/O thread.
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
    if (items_.size() == 1) wake_();
  }

  // Exchanges the posted ones for an empty vector, which keeps its memory.
  void take(std::vector<std::weak_ptr<Connection>>& into) {
    into.clear();
    const std::lock_guard lock(mutex_);
    std::swap(into, items_);
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    items_.clear();
  }

 private:
  std::mutex mutex_;
  const std::function<void()> wake_;
  std::vector<std::weak_ptr<Connection>> items_;
  bool closed_ = false;
};

}  // namespace kvasir::server
