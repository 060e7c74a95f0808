#include "server/app/gate.hpp"

#include <fmt/format.h>

#include <utility>

#include "report/json.hpp"
#include "server/app/replies.hpp"

namespace kvasir::server {
namespace {

constexpr std::uint32_t kLoadingRetry_s = 2;

}  // namespace

api::Json loading_json(const LoadProgress::Report& report) {
  api::ApiError error = api::overloaded(
      fmt::format("the model is loading: {}, {:.0f} % after {:.1f} s", report.stage, 100 * report.ratio, report.seconds),
      kLoadingRetry_s);
  error.code = "model_loading";
  api::Json json = error.json();
  json["status"] = "loading";
  json["progress"] = {{"stage", report.stage}, {"ratio", report.ratio}, {"seconds", report.seconds}};
  return json;
}

ServedModel* require_model(AppContext& app, Responder& responder) {
  if (app.ending) {
    reply(responder, api::overloaded("the server is shutting down", app.loop.retry_after_s()));
    return nullptr;
  }
  if (ServedModel* model = app.served()) return model;
  responder.send(503, {{"Retry-After", std::to_string(kLoadingRetry_s)}, {"x-should-retry", "true"}},
                 "application/json", report::to_json_line(loading_json(app.progress.report())));
  return nullptr;
}

std::optional<Entry> let_in(AppContext& app, ServedModel& model, const HttpRequest& request, ResponderPtr responder) {
  Entry entry{.id = request.id, .tenant = request.tenant, .arrived_ns = request.arrived_ns, .responder = responder,
              .slot = {}, .place = {}};
  auto slot = app.tenants.take(request.tenant);
  if (!slot) {
    model.metrics().refused("tenant_limit");
    reply(*responder, api::slow_down(fmt::format("{} requests of this key are under way; valid: at most {} at once",
                                                 app.tenants.most(), app.tenants.most()),
                                     app.loop.retry_after_s()));
    return std::nullopt;
  }
  entry.slot = std::move(*slot);
  Reserved reserved = app.loop.reserve(1);
  if (const auto* refusal = std::get_if<Refusal>(&reserved)) {
    model.metrics().refused(refusal->reason);
    entry.slot = {};
    reply(*responder, api_error(*refusal, app.loop.retry_after_s(), "prompt"));
    return std::nullopt;
  }
  entry.place = std::move(std::get<Place>(reserved));
  return entry;
}

api::ApiError busy(AppContext& app) {
  return api::overloaded("too many request bodies wait to be read", app.loop.retry_after_s());
}

}  // namespace kvasir::server
