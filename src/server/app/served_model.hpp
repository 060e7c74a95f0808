// The model that is served: what a loader hands over, and what the routes read once it is there.
// Thread rule: ServedModel is constant after create(); any thread, but for what its members say.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "server/api/model_facts.hpp"
#include "server/app/app_config.hpp"
#include "server/app/load_progress.hpp"
#include "server/app/metrics_feed.hpp"
#include "server/app/served_record.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::server {

struct LoadedEngine {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;  // none: a base model, chat is refused
  std::unique_ptr<engine::Engine> engine;
  std::string root;      // where the model came from: its path
  std::string identity;  // tells models apart in the fingerprint: size and headers of the file
  RecordMaker record;    // none: /kv/record has nothing to tell
};

// Runs on a thread of its own while the server answers 503. What it says about its progress is told to who asks.
using Loader = std::function<Result<LoadedEngine>(LoadProgress&)>;

class ServedModel {
 public:
  // Takes tokenizer and template out of `loaded`; the engine stays for the loop. Errors: Metrics::create's.
  static Result<std::unique_ptr<ServedModel>> create(LoadedEngine& loaded, const AppConfig& config);

  const api::ModelFacts& facts() const { return facts_; }
  const engine::EffectiveSettings& settings() const { return settings_; }
  MetricsFeed& metrics() const { return *metrics_; }

  // The output limit of a request that has none: what context and cache leave, at most the server's default.
  std::uint32_t output_limit(std::size_t prompt_tokens) const;

 private:
  ServedModel() = default;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  engine::EffectiveSettings settings_;
  std::uint32_t default_max_tokens_ = 0;
  api::ModelFacts facts_;
  std::unique_ptr<MetricsFeed> metrics_;
};

}  // namespace kvasir::server
