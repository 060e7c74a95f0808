#include "server/app/server_app.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "platform/clock.hpp"
#include "platform/thread_name.hpp"
#include "server/app/app_context.hpp"
#include "server/app/routes.hpp"
#include "server/http/http_server.hpp"

namespace kvasir::server {
namespace {

constexpr std::uint64_t kFlush_ms = 2'000;      // for bytes of answers that are complete
constexpr std::uint64_t kPoll_ns = 50'000'000;  // how late a second signal may be noticed while streams drain

}  // namespace

struct ServerApp::State {
  // One wake-up of the I/O thread for all the tokens of a step.
  explicit State(AppConfig config)
      : app(std::move(config), [this](bool telling) { telling ? http->hold_output() : http->release_output(); }) {}

  enum class End { none, drain, now };

  Status open(Loader load);
  void run_loader();
  void tell_of_record(const Status& status);
  Status load();
  void ask_to_end(End how, int number);
  End asked() const;
  void end();
  bool loading() const;

  AppContext app;
  Loader loader;
  std::unique_ptr<ServedModel> model;
  std::unique_ptr<Router> router;
  std::unique_ptr<HttpServer> http;
  std::thread loading_thread;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> loaded;  // the loader has returned
  End how = End::none;
  int signal = 0;
  bool ended = false;
};

Status ServerApp::State::open(Loader load) {
  KV_TRY(validate(app.config));
  loader = std::move(load);
  std::vector<Route> routes = all_routes(app, [this] { return http->stats(); });
  RouterConfig router_config{app.config.keys, app.config.admin_over_unix_socket, app.config.cors_origins};
  KV_ASSIGN(router, Router::create(std::move(routes), std::move(router_config)));
  HttpConfig config = app.config.http;
  config.on_access = [this](const AccessRecord& record) {
    app.log.access(record);
    if (ServedModel* served = app.served()) served->metrics().on_access(record);
  };
  config.on_warning = [this](const std::string& message) {
    app.log.log(LogLevel::warning, "http", {{"message", message}});
  };
  if (app.config.handle_signals) {
    config.on_signal = [this](int number, int count) { ask_to_end(count == 1 ? End::drain : End::now, number); };
  }
  KV_ASSIGN(http, HttpServer::create(std::move(config), *router));
  loading_thread = std::thread([this] { run_loader(); });
  return ok_status();
}

Status ServerApp::State::load() {
  try {
    KV_ASSIGN(LoadedEngine loaded_engine, loader(app.progress));
    app.progress.stage("starting the engine");
    KV_ASSIGN(auto served, ServedModel::create(loaded_engine, app.config));
    model = std::move(served);
    app.model.store(model.get(), std::memory_order_release);  // before the first step, which tells it
    KV_TRY(app.loop.start(std::move(loaded_engine.engine)));
    if (loaded_engine.record) {
      app.record.start(std::move(loaded_engine.record), [this](const Status& status) { tell_of_record(status); });
    }
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::exhausted, "out of memory while loading the model"};
  } catch (const std::exception& error) {
    return Error{ErrorCode::internal, fmt::format("loading the model failed: {}", error.what())};
  }
  return ok_status();
}

void ServerApp::State::tell_of_record(const Status& status) {
  if (status.ok()) return app.log.log(LogLevel::info, "record", {{"made", true}});
  if (status.error().code == ErrorCode::cancelled) return;
  app.log.log(LogLevel::error, "record", {{"made", false}, {"message", status.error().message}});
}

void ServerApp::State::run_loader() {
  platform::name_this_thread("kv-load");
  Status result = load();
  app.load_failed = !result.ok();
  {
    const std::scoped_lock lock(mutex);
    loaded.emplace(std::move(result));
  }
  changed.notify_all();
}

void ServerApp::State::ask_to_end(End wanted, int number) {
  app.ending = true;
  {
    const std::scoped_lock lock(mutex);
    if (how < wanted) how = wanted;
    if (signal == 0) signal = number;
  }
  changed.notify_all();
  app.log.log(LogLevel::info, "ending",
              {{"signal", std::int64_t{number}},
               {"how", wanted == End::drain ? std::string_view("drain") : std::string_view("now")}});
}

bool ServerApp::State::loading() const {
  const std::scoped_lock lock(mutex);
  return !loaded;
}

ServerApp::State::End ServerApp::State::asked() const {
  const std::scoped_lock lock(mutex);
  return how;
}

// Streams first, behind a port that still answers; then what is left to send; then the rest.
void ServerApp::State::end() {
  if (loading()) {  // nothing was accepted, and the loader cannot be interrupted
    http->stop();
    return http->wait();
  }
  const std::uint64_t now = platform::monotonic_ns();
  const std::uint64_t deadline = now + app.config.drain_timeout_ms * 1'000'000;
  if (asked() == End::drain) {
    app.loop.drain(deadline);
    // The loop ends the rest at the deadline by itself; waiting has no end of its own.
    while (asked() == End::drain && !app.loop.wait_drained(platform::monotonic_ns() + kPoll_ns)) {
    }
  }
  app.loop.stop();
  if (asked() == End::drain)
    http->drain(kFlush_ms);
  else
    http->stop();
  http->wait();
  app.workers.stop();
}

ServerApp::ServerApp(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ServerApp>> ServerApp::create(AppConfig config, Loader loader) {
  auto state = std::make_unique<State>(std::move(config));
  KV_TRY(state->open(std::move(loader)));
  return std::unique_ptr<ServerApp>(new ServerApp(std::move(state)));
}

ServerApp::~ServerApp() {
  stop();
  wait();
  if (state_->loading_thread.joinable()) state_->loading_thread.join();
  state_->app.record.stop();
  state_->app.loop.stop();  // begun by a loader that ended late
}

Status ServerApp::wait_loaded() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->loaded || state_->how != State::End::none; });
  if (state_->loaded) return *state_->loaded;
  return Error{ErrorCode::cancelled, "asked to end while the model was loading"};
}

int ServerApp::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->how != State::End::none; });
  if (!std::exchange(state_->ended, true)) {
    lock.unlock();
    state_->end();
    lock.lock();
  }
  return state_->signal;
}

void ServerApp::drain() { state_->ask_to_end(State::End::drain, 0); }
void ServerApp::stop() { state_->ask_to_end(State::End::now, 0); }

std::uint16_t ServerApp::port() const { return state_->http->port(); }
std::string ServerApp::url() const { return state_->http->url(); }

bool ServerApp::loading() const { return state_->loading(); }

LoopStats ServerApp::stats() const { return state_->app.loop.stats(); }

const engine::EffectiveSettings& ServerApp::settings() const {
  KV_CHECK(state_->model != nullptr, "a loaded model");
  return state_->model->settings();
}

}  // namespace kvasir::server
