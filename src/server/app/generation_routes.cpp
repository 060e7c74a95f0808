// POST /v1/chat/completions and /v1/completions: let in on the I/O thread, read and tokenized by a worker, answered from
// the engine loop.
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "platform/wall_clock.hpp"
#include "server/api/json_body.hpp"
#include "server/app/engine_requests.hpp"
#include "server/app/gate.hpp"
#include "server/app/generation.hpp"
#include "server/app/routes.hpp"

namespace kvasir::server {
namespace {

std::uint64_t draw_seed() {
  std::random_device source;
  return std::uint64_t{source()} << 31 ^ source();  // 63 bits: every client's integers hold it
}

api::AnswerHead head_of(std::string_view prefix, const api::RequestOptions& options, const Entry& entry,
                        const api::ModelFacts& facts) {
  return {.id = std::string(prefix) + (options.request_id.empty() ? entry.id : options.request_id),
          .created = platform::unix_ms() / 1000,
          .model = options.model,
          .fingerprint = facts.fingerprint};
}

// The field that says how many requests of the engine each prompt becomes.
std::string_view counted_by(const api::RequestOptions& options) { return options.samples > options.n ? "best_of" : "n"; }

api::JsonLimits json_limits(const AppContext& app) { return {.max_bytes = app.config.http.max_body_bytes}; }

// What a worker does with one request. ok: it was submitted, or its client has left.
class Reader {
 public:
  Reader(AppContext& app, ServedModel& model, std::shared_ptr<Generation> generation)
      : app_(app), model_(model), facts_(model.facts()), generation_(std::move(generation)) {}

  api::ApiStatus chat(const std::string& body) {
    if (generation_->cancelled()) return api::api_ok();
    KV_ASSIGN(const api::Json json, api::parse_body(body, json_limits(app_)));
    KV_ASSIGN(api::ChatRequest request, api::parse_chat(json, facts_));
    app_.warn_of_fields(request.warnings);
    if (auto refusal = generation_->reserve(request.options.streams(), counted_by(request.options))) return *refusal;
    KV_ASSIGN(api::PreparedPrompt prompt, api::prepare_chat(request, facts_));
    auto context = std::make_shared<api::ChatContext>();
    context->head = head_of("chatcmpl-", request.options, generation_->entry(), facts_);
    context->options = std::move(request.options);
    context->prompt = std::move(prompt);
    context->tokenizer = facts_.tokenizer;
    return submit(context, {&context->prompt, 1}, "messages");
  }

  api::ApiStatus completion(const std::string& body) {
    if (generation_->cancelled()) return api::api_ok();
    KV_ASSIGN(const api::Json json, api::parse_body(body, json_limits(app_)));
    KV_ASSIGN(api::CompletionRequest request, api::parse_completion(json, facts_));
    app_.warn_of_fields(request.warnings);
    if (auto refusal = generation_->reserve(request.prompts.size() * request.options.streams(), counted_by(request.options))) return *refusal;
    KV_ASSIGN(std::vector<api::PreparedPrompt> prompts, api::prepare_completion(request, facts_));
    auto context = std::make_shared<api::CompletionContext>();
    context->head = head_of("cmpl-", request.options, generation_->entry(), facts_);
    context->options = std::move(request.options);
    context->echo = request.echo;
    context->prompts = std::move(prompts);
    context->tokenizer = facts_.tokenizer;
    return submit(context, context->prompts, "prompt");
  }

 private:
  template <class Context>
  api::ApiStatus submit(std::shared_ptr<Context> context, std::span<const api::PreparedPrompt> prompts,
                        std::string_view prompt_field) {
    if (generation_->cancelled()) return api::api_ok();
    KV_ASSIGN(Work work, make_work(context->options, prompts, model_, draw_seed()));
    work.shape.arrived_ns = generation_->entry().arrived_ns;
    work.prompt_field = prompt_field;
    auto delivery = make_delivery(std::shared_ptr<const Context>(std::move(context)), generation_->entry().responder,
                                  app_.workers);
    if (auto refusal = generation_->submit(std::move(work), std::move(delivery))) return *refusal;
    return api::api_ok();
  }

  AppContext& app_;
  ServedModel& model_;
  const api::ModelFacts& facts_;
  const std::shared_ptr<Generation> generation_;
};

using Read = api::ApiStatus (Reader::*)(const std::string& body);

// Refusals of the engine loop were counted where they arose.
void count_refusal(MetricsFeed& metrics, const api::ApiError& error) {
  if (error.code == "context_length_exceeded")
    metrics.refused("context_length");
  else if (error.status < 500 && error.code != "request_does_not_fit")
    metrics.refused("bad_request");
}

RouteHandler generation_handler(AppContext& app, Read read) {
  return [&app, read](HttpRequest request, const ResponderPtr& responder) {
    ServedModel* model = require_model(app, *responder);
    if (model == nullptr) return;
    std::optional<Entry> entry = let_in(app, *model, request, responder);
    if (!entry) return;
    auto generation = std::make_shared<Generation>(app, *model, std::move(*entry));
    generation->watch();
    const std::uint64_t bytes = request.body.size();
    const bool posted = app.workers.try_post(bytes, [&app, model, generation, read, body = std::move(request.body)] {
      const api::ApiStatus status = (Reader(app, *model, generation).*read)(body);
      if (status.ok()) return;
      count_refusal(model->metrics(), status.error());
      generation->refuse(status.error());
    });
    if (!posted) generation->refuse(busy(app));
  };
}

}  // namespace

void add_generation_routes(AppContext& app, std::vector<Route>& routes) {
  routes.push_back({"POST", "/v1/chat/completions", Access::user, generation_handler(app, &Reader::chat)});
  routes.push_back({"POST", "/v1/completions", Access::user, generation_handler(app, &Reader::completion)});
}

}  // namespace kvasir::server
