// What goes on in the server, as its metrics: steps from the engine loop, requests from their own times, and the state
// of the moment when somebody asks.
//
// Thread rule: on_step(), first_token(), inter_token() and flush() on the engine loop's thread; the rest on any.
// Invariants: each request counts once. Values of single tokens are kept until the next step or the next end of a
// request and then go in together; what a client learns from an answer's end is in the metrics before it learns it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "server/engine_loop.hpp"
#include "server/http/http_server.hpp"
#include "server/metrics/metrics.hpp"

namespace kvasir::server {

class MetricsFeed {
 public:
  MetricsFeed(std::unique_ptr<Metrics> metrics, const engine::EffectiveSettings& settings,
              std::span<const engine::MemoryLine> memory);

  void on_step(const engine::StepReport& step, std::uint32_t generated_tokens);
  void first_token(double seconds) { first_token_s_.push_back(seconds); }
  void inter_token(double seconds) { inter_token_s_.push_back(seconds); }
  void flush();

  void on_access(const AccessRecord& record);
  void refused(RefusalReason reason);
  // A reason that the engine loop does not know: "tenant_limit", "context_length", "bad_request".
  void refused(std::string_view reason);
  void admitted(std::uint64_t prompt_tokens) { metrics_->on_admitted({.prompt_tokens = prompt_tokens}); }
  void finished(const FinishedSample& sample) { metrics_->on_finished(sample); }
  // stage: "queued", "prefill" or "decode".
  void cancelled(std::string_view stage);

  // What GET /metrics answers now.
  std::string scrape(const LoopStats& loop, const HttpStats& http, bool ready);

 private:
  const std::unique_ptr<Metrics> metrics_;
  const engine::EffectiveSettings settings_;
  HistogramHandle first_token_, inter_token_;
  std::vector<double> first_token_s_, inter_token_s_;   // not observed yet: one lock serves many
};

// GET /metrics while the model loads.
std::string loading_metrics(std::string_view model_name, double ratio);

}  // namespace kvasir::server
