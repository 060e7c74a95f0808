// The server: HTTP in front, one engine loop behind, and their common life.
//
//   create()  -> port open, probes answered, the model loads on a thread of its own
//             -> ready
//   signal or drain() -> ready no more, nothing new; what was accepted gets drain_timeout_ms
//   second signal or stop(), or all has ended -> everything ends
//
// Thread rule: every call from any thread; wait_*() and the destructor not from callbacks.
// Invariants: the port accepts before any byte of the model is read, and until everything has ended, so that a probe
// always gets an answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "server/app/app_config.hpp"
#include "server/app/served_model.hpp"
#include "server/engine_loop_stats.hpp"

namespace kvasir::server {

class ServerApp {
 public:
  // Errors: usage (the configuration); io (the address). Then `loader` runs; what it fails with is wait_loaded()'s.
  static Result<std::unique_ptr<ServerApp>> create(AppConfig config, Loader loader);
  // Ends what runs, as stop() does, and waits for the loader.
  ~ServerApp();
  ServerApp(const ServerApp&) = delete;
  ServerApp& operator=(const ServerApp&) = delete;

  // Until the model is there, or cannot be, or the server was asked to end (cancelled). Errors: the loader's.
  Status wait_loaded();
  // Until it was asked to end and everything has ended. The signal's number, 0 if it was drain() or stop().
  int wait();

  void drain();
  void stop();

  std::uint16_t port() const;
  std::string url() const;
  // Whether the loader still runs: nothing can interrupt it.
  bool loading() const;
  LoopStats stats() const;
  const engine::EffectiveSettings& settings() const;  // REQUIRES: wait_loaded() was ok

 private:
  struct State;
  explicit ServerApp(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
