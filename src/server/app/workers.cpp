#include "server/app/workers.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "platform/thread_name.hpp"

namespace kvasir::server {

Workers::Workers(const WorkerLimits& limits, std::function<void(const std::string& what)> on_failure)
    : limits_(limits), on_failure_(std::move(on_failure)) {
  threads_.reserve(limits.threads);
  for (std::uint32_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() { stop(); }

bool Workers::try_post(std::uint64_t bytes, Task task) {
  {
    const std::scoped_lock lock(mutex_);
    // A body larger than the whole bound passes while no other waits.
    const bool bytes_fit = waiting_bytes_ == 0 || bytes <= limits_.bytes - std::min(limits_.bytes, waiting_bytes_);
    if (stopped_ || waiting_.size() >= limits_.tasks || !bytes_fit) return false;
    waiting_bytes_ += bytes;
    waiting_.push_back({std::move(task), bytes});
  }
  changed_.notify_one();
  return true;
}

void Workers::post(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_) return;
    waiting_.push_back({std::move(task), 0});
  }
  changed_.notify_one();
}

void Workers::stop() {
  std::deque<Waiting> dropped;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
    waiting_bytes_ = 0;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::run() {
  platform::name_this_thread("kv-api");
  for (;;) {
    Waiting next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= next.bytes;
    }
    try {
      next.task();
    } catch (const std::exception& error) {  // the responder that the task lets go of answers 500
      on_failure_(error.what());
    } catch (...) {
      on_failure_("an exception that is no std::exception");
    }
  }
}

}  // namespace kvasir::server
