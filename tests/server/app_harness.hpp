// A whole server in this process over the tiny model, and clients that talk raw HTTP to it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/json.hpp"
#include "server/app/server_app.hpp"
#include "tests/engine/tiny_engine.hpp"
#include "tests/server/http_support.hpp"

namespace kvasir::server::app_test {

using report::Json;

inline constexpr std::string_view kTemplate =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// Holds the engine loop's thread after a step, so that a test decides what happens between two steps.
class StepGate {
 public:
  void step() {
    std::unique_lock lock(mutex_);
    ++steps_;
    held_ = shut_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !shut_; });
    held_ = false;
  }
  // The loop stops after the step that runs now, or the next one.
  void shut() {
    const std::scoped_lock lock(mutex_);
    shut_ = true;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    shut_ = false;
    changed_.notify_all();
  }
  void wait_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_; });
  }
  int steps() const {
    const std::scoped_lock lock(mutex_);
    return steps_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false, held_ = false;
  int steps_ = 0;
};

struct TestApp {
  // blocks: of 16 tokens, in the cache. hold_loading: the loader waits for finish_loading().
  explicit TestApp(AppConfig config = {}, std::uint32_t blocks = 512, bool hold_loading = false, RecordMaker record_maker = {})
      : record(std::move(record_maker)), gate(std::make_shared<StepGate>()), loading(hold_loading) {
    config.http.port = 0;
    config.handle_signals = false;
    if (config.names.empty()) config.names = {"tiny", "alias"};
    config.loop.check_invariants = true;
    config.loop.on_step = [gate = gate](const engine::StepReport&, std::uint32_t) { gate->step(); };
    config.version = "0.0.0-test";
    config.log_sink = [this](std::string_view line) { log += line; };
    const std::uint32_t queued = config.loop.max_queued_requests + 64;
    auto made = ServerApp::create(std::move(config), [this, blocks, queued](LoadProgress& progress) {
      return load(progress, blocks, queued);
    });
    if (!made.ok()) {
      ADD_FAILURE() << made.error().message;
      std::abort();
    }
    app = std::move(made).value();
    if (!hold_loading) {
      EXPECT_TRUE(app->wait_loaded().ok());
    }
    while (!staged) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~TestApp() {
    finish_loading();
    gate->open();
  }

  Result<LoadedEngine> load(LoadProgress& progress, std::uint32_t blocks, std::uint32_t queued) {
    progress.stage("waiting for the test", 1 << 30);
    staged = true;
    while (loading) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!load_error.empty()) return Error{ErrorCode::bad_input, load_error};
    LoadedEngine out;
    out.tokenizer = engine::test::tiny_tokenizer();
    KV_ASSIGN(out.chat_template, text::ChatTemplate::from_string(kTemplate, "<|endoftext|>", "<|im_end|>"));
    engine::PoolConfig pool = engine::test::pool_of(blocks);
    pool.max_sequences = 64;
    pool.max_batched_tokens = 128;
    pool.max_queued = queued;
    out.engine = engine::test::make_engine(engine::test::shared_gqa(), pool, true);
    out.root = "tiny.gguf";
    out.identity = "tiny";
    out.record = record;
    return out;
  }
  void finish_loading() { loading = false; }

  RawClient client(int receive_buffer = 0) const { return RawClient(app->port(), receive_buffer); }
  Json get(const std::string& target, int status = 200) const {
    const RawResponse response = client().get(target);
    EXPECT_EQ(response.status, status) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  Json post(const std::string& target, const Json& body, int status = 200) const {
    const RawResponse response = client().post(target, body.dump());
    EXPECT_EQ(response.status, status) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  // One line of /metrics: the value of this series (its name and, in braces, one of its labels), -1 if it is not there.
  double metric(const std::string& name, const std::string& label = "") const {
    std::string text = client().get("/metrics").body;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      if (line.starts_with(name + "{") && line.find(label) != std::string::npos) {
        return std::stod(line.substr(line.rfind(' ')));
      }
      at = end == std::string::npos ? text.size() : end + 1;
    }
    return -1;
  }
  // Nothing is queued, runs, or holds a block.
  bool idle() const {
    const LoopStats stats = app->stats();
    return stats.queued_requests == 0 && stats.queued_tokens == 0 && stats.running == 0 && stats.waiting == 0 &&
           stats.cache.active_bytes == 0 && stats.cache.claimed_bytes == 0;
  }

  std::string log;  // written under the logger's lock; read once the server is quiet
  std::string load_error;
  RecordMaker record;  // of the loaded engine
  std::shared_ptr<StepGate> gate;
  std::atomic<bool> loading;
  std::atomic<bool> staged = false;   // the loader has begun
  std::unique_ptr<ServerApp> app;
};

// A request for `max_tokens` tokens, whatever they are.
inline Json completion(const std::string& prompt, int max_tokens) {
  return {{"model", "tiny"}, {"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}, {"ignore_eos", true}};
}

inline std::string http_post(const std::string& target, const Json& body) {
  const std::string text = body.dump();
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

// The payloads of an event stream, "[DONE]" included.
inline std::vector<std::string> payloads(const std::string& body) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
    const std::size_t end = body.find("\n\n", at);
    out.push_back(body.substr(at + 6, end - at - 6));
    if (end == std::string::npos) break;
    at = end;
  }
  return out;
}

}  // namespace kvasir::server::app_test
