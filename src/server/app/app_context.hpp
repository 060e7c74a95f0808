// What the routes and the requests under way have in common.
// Thread rule: any thread; `model` appears once, when it is loaded.
// Invariants: outlives every request: the app stops the HTTP server, the engine loop and the workers before it goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/app/app_config.hpp"
#include "server/app/load_progress.hpp"
#include "server/app/served_model.hpp"
#include "server/app/served_record.hpp"
#include "server/app/tenant_limits.hpp"
#include "server/app/workers.hpp"
#include "server/engine_loop.hpp"
#include "server/log.hpp"

namespace kvasir::server {

struct AppContext {
  // `on_telling`: see EngineLoopConfig.
  AppContext(AppConfig configuration, TellHook on_telling);

  // Null while it loads.
  ServedModel* served() const { return model.load(std::memory_order_acquire); }
  // Loaded, accepting, and not ending.
  bool ready() const { return served() != nullptr && loop.state() == LoopState::ready && !ending; }
  // The event loop turns, or nobody would ask; does the engine's?
  bool alive() const;
  // Fields that clients send and that do nothing here: each name once in the log, so that somebody can find out.
  void warn_of_fields(const std::vector<std::string>& names);

  const AppConfig config;
  Logger log;
  LoadProgress progress;
  TenantLimits tenants;
  EngineLoop loop;
  std::atomic<ServedModel*> model{nullptr};
  ServedRecord record;
  std::atomic<bool> ending{false};       // asked to stop: readiness is off
  std::atomic<bool> load_failed{false};  // no model will come
  std::mutex warned_mutex;
  std::set<std::string> warned;  // bounded: names come from outside
  Workers workers;               // last: its tasks use the rest
};

}  // namespace kvasir::server
