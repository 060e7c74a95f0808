// A few threads for what a request needs that takes time in proportion to its size: parsing, rendering, tokenizing, and
// writing whole answers. Neither an I/O thread nor the engine loop ever does that.
// Thread rule: every call from any thread; stop() not from a task.
// Invariants: what waits is bounded by number and by bytes, but for what post() was given: those tasks belong to
// requests that were accepted. Tasks that never run are destroyed, which lets go of what they hold.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kvasir::server {

struct WorkerLimits {
  std::uint32_t threads = 2;
  std::uint32_t tasks = 1024;
  std::uint64_t bytes = 256 << 20;
};

class Workers {
 public:
  using Task = std::function<void()>;

  // on_failure: an exception left a task; called on its thread.
  Workers(const WorkerLimits& limits, std::function<void(const std::string& what)> on_failure);
  ~Workers();  // stop()
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // bytes: of the body that the task holds. False: too much waits already, or it was stopped.
  bool try_post(std::uint64_t bytes, Task task);
  void post(Task task);
  // Ends after the tasks that run now. Idempotent.
  void stop();

 private:
  struct Waiting {
    Task task;
    std::uint64_t bytes = 0;
  };
  void run();

  const WorkerLimits limits_;
  const std::function<void(const std::string&)> on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::uint64_t waiting_bytes_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kvasir::server
