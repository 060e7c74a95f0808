// Routes that generate nothing: models, tokens, rendered prompts.
#include <utility>

#include "server/api/json_body.hpp"
#include "server/api/plain_answers.hpp"
#include "server/app/gate.hpp"
#include "server/app/replies.hpp"
#include "server/app/routes.hpp"

namespace kvasir::server {
namespace {

constexpr std::uint32_t kRecordRetryS = 2;   // a hash takes about a second for each GB

using Answer = api::ApiResult<api::Json>;
using Answerer = Answer (*)(AppContext& app, const api::ModelFacts& facts, const HttpRequest& request);

// Answers of a body, by a worker.
RouteHandler body_handler(AppContext& app, Answerer answerer) {
  return [&app, answerer](HttpRequest request, const ResponderPtr& responder) {
    ServedModel* model = require_model(app, *responder);
    if (model == nullptr) return;
    const std::uint64_t bytes = request.body.size();
    const bool posted =
        app.workers.try_post(bytes, [&app, model, answerer, responder, request = std::move(request)] {
          if (responder->gone()) return;
          const Answer answer = answerer(app, model->facts(), request);
          if (answer.ok()) return reply(*responder, *answer);
          model->metrics().refused("bad_request");
          reply(*responder, answer.error());
        });
    if (!posted) reply(*responder, busy(app));
  };
}

api::JsonLimits json_limits(const AppContext& app) { return {.max_bytes = app.config.http.max_body_bytes}; }

Answer tokenize(AppContext& app, const api::ModelFacts& facts, const HttpRequest& request) {
  KV_ASSIGN(const api::Json json, api::parse_body(request.body, json_limits(app)));
  KV_ASSIGN(const api::TokenizeRequest parsed, api::parse_tokenize(json, facts));
  app.warn_of_fields(parsed.warnings);
  return api::tokenize_json(parsed, facts);
}

Answer detokenize(AppContext& app, const api::ModelFacts& facts, const HttpRequest& request) {
  KV_ASSIGN(const api::Json json, api::parse_body(request.body, json_limits(app)));
  KV_ASSIGN(const api::DetokenizeRequest parsed, api::parse_detokenize(json, facts));
  app.warn_of_fields(parsed.warnings);
  return api::detokenize_json(parsed, facts);
}

Answer render_chat(AppContext& app, const api::ModelFacts& facts, const HttpRequest& request) {
  KV_ASSIGN(const api::Json json, api::parse_body(request.body, json_limits(app)));
  KV_ASSIGN(const api::ChatRequest parsed, api::parse_chat(json, facts));
  KV_ASSIGN(const api::PreparedPrompt prompt, api::prepare_chat(parsed, facts));
  return api::render_chat_json(parsed, prompt, request.id);
}

Answer render_completion(AppContext& app, const api::ModelFacts& facts, const HttpRequest& request) {
  KV_ASSIGN(const api::Json json, api::parse_body(request.body, json_limits(app)));
  KV_ASSIGN(const api::CompletionRequest parsed, api::parse_completion(json, facts));
  KV_ASSIGN(const std::vector<api::PreparedPrompt> prompts, api::prepare_completion(parsed, facts));
  return api::render_completion_json(parsed, prompts, request.id);
}

Answer models(AppContext&, const api::ModelFacts& facts, const HttpRequest&) { return api::models_json(facts); }

Answer one_model(AppContext&, const api::ModelFacts& facts, const HttpRequest& request) {
  return api::model_json(*request.path_value("id"), facts);
}

Answer tokenizer_info(AppContext&, const api::ModelFacts& facts, const HttpRequest&) {
  return api::tokenizer_info_json(facts);
}

// Answers at once. They do not grow with anything that a client sends.
RouteHandler small_handler(AppContext& app, Answerer answerer) {
  return [&app, answerer](const HttpRequest& request, const ResponderPtr& responder) {
    ServedModel* model = require_model(app, *responder);
    if (model == nullptr) return;
    const Answer answer = answerer(app, model->facts(), request);
    if (answer.ok()) return reply(*responder, *answer);
    reply(*responder, answer.error());
  };
}

// Nothing in it comes from a client or names a path.
void record(AppContext& app, Responder& responder) {
  if (require_model(app, responder) == nullptr) return;
  api::ApiError error;
  switch (app.record.state()) {
    case ServedRecord::State::there:
      responder.send(200, {}, "application/json", app.record.text());
      return;
    case ServedRecord::State::making:
      return reply(responder, api::overloaded("the model file is being hashed for the record", kRecordRetryS));
    case ServedRecord::State::failed:
      error.code = "record_failed";
      error.message = "the record could not be made; the server's log says why";
      return reply(responder, error);
    case ServedRecord::State::none:
      error.status = 404;
      error.type = "invalid_request_error";
      error.code = "no_record";
      error.message = "this server was started without an artifact record";
      return reply(responder, error);
  }
}

}  // namespace

void add_plain_routes(AppContext& app, std::vector<Route>& routes) {
  routes.push_back({"GET", "/v1/models", Access::user, small_handler(app, models)});
  routes.push_back({"GET", "/v1/models/{id...}", Access::user, small_handler(app, one_model)});
  routes.push_back({"GET", "/tokenizer_info", Access::user, small_handler(app, tokenizer_info)});
  routes.push_back({"GET", "/kv/record", Access::user, [&app](const HttpRequest&, const ResponderPtr& responder) {
                      record(app, *responder);
                    }});
  routes.push_back({"POST", "/tokenize", Access::user, body_handler(app, tokenize)});
  routes.push_back({"POST", "/detokenize", Access::user, body_handler(app, detokenize)});
  routes.push_back({"POST", "/v1/chat/completions/render", Access::user, body_handler(app, render_chat)});
  routes.push_back({"POST", "/v1/completions/render", Access::user, body_handler(app, render_completion)});
}

}  // namespace kvasir::server
