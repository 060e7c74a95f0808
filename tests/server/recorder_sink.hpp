// A sink that remembers what it was told, and can hold the loop at a token until the test has done something.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/token_sink.hpp"

namespace kvasir::server::test {

class RecorderSink : public TokenSink {
 public:
  // Holds the loop's thread within on_token() of each of these tokens (0 = the first), until pass().
  explicit RecorderSink(std::vector<std::size_t> hold_at = {}) : hold_at_(std::move(hold_at)) {}

  void on_token(const TokenEvent& event) override {
    std::unique_lock lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
    events_.push_back(event);
    const std::size_t index = events_.size() - 1;
    bool hold = false;
    for (const std::size_t at : hold_at_) hold = hold || at == index;
    if (!hold) return;
    held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
  }

  void on_end(const EndEvent& event) override {
    const std::scoped_lock lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
    end_ = event;
    ++ends_;
    changed_.notify_all();
  }

  // Until the loop is held at a token.
  void wait_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_; });
  }
  void pass() {
    const std::scoped_lock lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  EndEvent wait_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ends_ > 0; });
    return *end_;
  }

  std::vector<TokenEvent> events() const {
    const std::scoped_lock lock(mutex_);
    return events_;
  }
  std::vector<TokenId> tokens() const {
    std::vector<TokenId> tokens;
    for (const TokenEvent& event : events()) tokens.push_back(event.token);
    return tokens;
  }
  std::string text() const {
    std::string text;
    for (const TokenEvent& event : events()) text += event.text;
    return text;
  }
  int ends() const {
    const std::scoped_lock lock(mutex_);
    return ends_;
  }
  std::vector<std::thread::id> threads() const {
    const std::scoped_lock lock(mutex_);
    return threads_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const std::vector<std::size_t> hold_at_;
  bool held_ = false;
  std::vector<TokenEvent> events_;
  std::optional<EndEvent> end_;
  int ends_ = 0;
  std::vector<std::thread::id> threads_;
};

}  // namespace kvasir::server::test
