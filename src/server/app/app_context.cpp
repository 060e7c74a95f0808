#include "server/app/app_context.hpp"

#include <utility>

#include "platform/clock.hpp"

namespace kvasir::server {
namespace {

constexpr std::size_t kWarnedNames = 1024;

EngineLoopConfig loop_config(AppContext& app, EngineLoopConfig config, TellHook on_telling) {
  config.on_step = [&app, next = std::move(config.on_step)](const engine::StepReport& step,
                                                            std::uint32_t generated_tokens) {
    if (ServedModel* model = app.served()) model->metrics().on_step(step, generated_tokens);
    if (next) next(step, generated_tokens);
  };
  config.on_telling = std::move(on_telling);
  return config;
}

}  // namespace

AppContext::AppContext(AppConfig configuration, TellHook on_telling)
    : config(std::move(configuration)),
      log(config.log_format, config.log_level, config.log_sink),
      tenants(config.max_requests_per_key),
      loop(loop_config(*this, config.loop, std::move(on_telling))),
      workers({config.api_threads, config.max_waiting_bodies, config.max_waiting_body_bytes},
              [this](const std::string& what) { log.log(LogLevel::error, "worker_failed", {{"what", what}}); }) {}

bool AppContext::alive() const {
  if (load_failed || loop.state() == LoopState::failed) return false;
  if (served() == nullptr || loop.state() == LoopState::stopped) return true;
  const std::uint64_t now = platform::monotonic_ns(), beat = loop.heartbeat_ns();
  return beat == 0 || now < beat || (now - beat) / 1'000'000 <= config.liveness_timeout_ms;
}

void AppContext::warn_of_fields(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    {
      const std::scoped_lock lock(warned_mutex);
      if (warned.size() >= kWarnedNames || !warned.insert(name).second) continue;
    }
    log.log(LogLevel::warning, "field_without_effect", {{"field", name}});
  }
}

}  // namespace kvasir::server
