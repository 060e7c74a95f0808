// The artifact record that GET /kv/record serves. Making one reads the whole model file, so it is made once, on a thread of
// its own, after the model is loaded; until then the route says so.
// Thread rule: start() once; everything else from any thread. stop() waits for the thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.hpp"

namespace kvasir::server {

// The record's text: no paths, no keys. `go_on` is asked now and then; false ends the work (cancelled).
using RecordMaker = std::function<Result<std::string>(const std::function<bool()>& go_on)>;

class ServedRecord {
 public:
  enum class State { none, making, there, failed };   // none: no model yet, or nobody makes one

  ServedRecord() = default;
  ~ServedRecord() { stop(); }
  ServedRecord(const ServedRecord&) = delete;
  ServedRecord& operator=(const ServedRecord&) = delete;

  // REQUIRES: not started before. on_end: called on the thread, with what came of it.
  void start(RecordMaker maker, std::function<void(const Status&)> on_end);
  void stop();

  State state() const { return state_.load(std::memory_order_acquire); }
  const std::string& text() const { return text_; }   // REQUIRES: there

 private:
  std::atomic<State> state_{State::none};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;   // of thread_
  std::thread thread_;
  std::string text_;   // written before state_ says it is there
};

}  // namespace kvasir::server
