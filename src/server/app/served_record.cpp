#include "server/app/served_record.hpp"

#include <exception>
#include <new>
#include <utility>

#include "platform/thread_name.hpp"

namespace kvasir::server {
namespace {

// A foreign library's exception ends the record, not the server.
Result<std::string> make(const RecordMaker& maker, const std::atomic<bool>& stopping) {
  try {
    return maker([&stopping] { return !stopping; });
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::exhausted, "out of memory while making the artifact record"};
  } catch (const std::exception& error) {
    return Error{ErrorCode::internal, std::string("making the artifact record failed: ") + error.what()};
  }
}

}  // namespace

void ServedRecord::start(RecordMaker maker, std::function<void(const Status&)> on_end) {
  const std::scoped_lock lock(mutex_);
  KV_CHECK(!thread_.joinable() && state_ == State::none, "a record is made once");
  if (stopping_) return;
  state_ = State::making;
  thread_ = std::thread([this, maker = std::move(maker), on_end = std::move(on_end)]() mutable {
    platform::name_this_thread("kv-record");
    Result<std::string> made = make(maker, stopping_);
    maker = nullptr;   // lets go of the model file
    if (made.ok()) text_ = *made;
    state_.store(made.ok() ? State::there : State::failed, std::memory_order_release);
    on_end(made.ok() ? ok_status() : Status(made.error()));
  });
}

void ServedRecord::stop() {
  stopping_ = true;
  const std::scoped_lock lock(mutex_);
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvasir::server
