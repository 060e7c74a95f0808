// What probes, monitors and load balancers ask: is it there, is it ready, how much does it do.
#include <algorithm>
#include <string_view>
#include <utility>

#include "server/app/gate.hpp"
#include "server/app/kv_stats.hpp"
#include "server/app/replies.hpp"
#include "server/app/routes.hpp"

namespace kvasir::server {
namespace {

using api::Json;

Access access_of(const AppContext& app, std::string_view group) {
  const std::vector<std::string>& shut = app.config.protected_routes;
  return std::find(shut.begin(), shut.end(), group) != shut.end() ? Access::user : Access::open;
}

// Answered at once, whatever state the server is in.
template <class Function>
RouteHandler at_once(Function function) {
  return [function](const HttpRequest&, const ResponderPtr& responder) { function(*responder); };
}

void live(AppContext& app, Responder& responder) {
  if (app.alive()) return reply(responder, Json{{"status", "ok"}});
  api::ApiError error;
  error.status = 503;
  error.code = "not_alive";
  error.message = app.load_failed ? "the model could not be loaded"
                  : app.loop.state() == LoopState::failed
                      ? "the engine loop has failed"
                      : "the engine loop has not begun a turn for longer than the liveness timeout";
  reply(responder, error);
}

void ready(AppContext& app, Responder& responder) {
  if (app.ready()) return reply(responder, Json{{"status", "ok"}});
  if (app.load_failed || app.loop.state() == LoopState::failed) return live(app, responder);
  if (require_model(app, responder) == nullptr) return;
  reply(responder, api::overloaded("the engine loop accepts nothing", app.loop.retry_after_s()));
}

void load(AppContext& app, Responder& responder) {
  const LoopStats stats = app.loop.stats();
  const std::uint32_t under_way = stats.queued_requests + stats.running;
  reply(responder, Json{{"server_load", under_way}, {"queued", stats.queued_requests}, {"running", stats.running}});
}

void kv_stats(AppContext& app, Responder& responder) {
  if (require_model(app, responder) != nullptr) reply(responder, kv_stats_json(app.loop.stats()));
}

void metrics(AppContext& app, const HttpStatsSource& http, Responder& responder) {
  ServedModel* model = app.served();
  const std::string text = model != nullptr
                               ? model->metrics().scrape(app.loop.stats(), http(), app.ready())
                               : loading_metrics(app.config.names[0], app.progress.report().ratio);
  responder.send(200, {}, Metrics::kContentType, text);
}

}  // namespace

void add_probe_routes(AppContext& app, HttpStatsSource http, std::vector<Route>& routes) {
  const Access health = access_of(app, "health");
  const RouteHandler is_live = at_once([&app](Responder& responder) { live(app, responder); });
  const RouteHandler is_ready = at_once([&app](Responder& responder) { ready(app, responder); });
  for (const char* path : {"/livez", "/health/live", "/v2/health/live"})
    routes.push_back({"GET", path, health, is_live});
  for (const char* path : {"/health", "/readyz", "/health/ready", "/v2/health/ready", "/ping"})
    routes.push_back({"GET", path, health, is_ready});
  routes.push_back({"POST", "/ping", health, is_ready});
  routes.push_back({"GET", "/version", access_of(app, "version"), at_once([&app](Responder& responder) {
                      reply(responder, Json{{"version", app.config.version}});
                    })});
  routes.push_back({"GET", "/load", access_of(app, "metrics"),
                    at_once([&app](Responder& responder) { load(app, responder); })});
  routes.push_back({"GET", "/kv/stats", access_of(app, "metrics"),
                    at_once([&app](Responder& responder) { kv_stats(app, responder); })});
  routes.push_back({"GET", "/metrics", access_of(app, "metrics"), at_once([&app, http](Responder& responder) {
                      metrics(app, http, responder);
                    })});
}

}  // namespace kvasir::server
