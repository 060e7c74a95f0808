#include "server/app/served_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/hash.hpp"
#include "platform/wall_clock.hpp"

namespace kvasir::server {
namespace {

// Equal fingerprints: equal build, model, KV format and arithmetic, so equal answers to equal requests.
std::string fingerprint_of(const LoadedEngine& loaded, const engine::EffectiveSettings& settings,
                           std::string_view version) {
  const std::string text = fmt::format("{}\n{}\n{}\n{}", version, loaded.identity, settings.kv_cache_dtype,
                                       static_cast<int>(settings.compute));
  const Hash128 hash = xxh128(std::as_bytes(std::span(text)));
  return fmt::format("kvasir-{}-{:012x}", version, hash.high >> 16);
}

MetricsConfig metrics_config(const engine::EffectiveSettings& settings, const engine::CacheAccounting& cache,
                             const std::string& name) {
  MetricsConfig config;
  config.model_name = name;
  config.max_model_len = settings.max_model_len;
  config.block_size = settings.block_tokens;
  config.num_gpu_blocks = cache.total_blocks;
  config.cache_dtype = settings.kv_cache_dtype;
  return config;
}

}  // namespace

Result<std::unique_ptr<ServedModel>> ServedModel::create(LoadedEngine& loaded, const AppConfig& config) {
  std::unique_ptr<ServedModel> model(new ServedModel);
  model->settings_ = loaded.engine->effective();
  model->default_max_tokens_ = config.default_max_tokens;
  api::ModelFacts& facts = model->facts_;
  facts.fingerprint = fingerprint_of(loaded, model->settings_, config.version);
  model->tokenizer_ = std::move(loaded.tokenizer);
  model->chat_template_ = std::move(loaded.chat_template);
  facts.names = config.names;
  facts.root = loaded.root;
  facts.created = platform::unix_ms() / 1000;
  facts.max_model_len = model->settings_.max_model_len;
  facts.tokenizer = model->tokenizer_.get();
  facts.longest_piece_bytes = api::longest_piece(*model->tokenizer_);
  facts.chat_template = model->chat_template_ ? &*model->chat_template_ : nullptr;
  facts.trust_request_template = config.trust_request_template;
  facts.priority_scheduling = config.priority_scheduling;
  facts.strict = config.strict;
  facts.stream_interval = config.stream_interval;
  const engine::CacheAccounting cache = loaded.engine->accounting();
  KV_ASSIGN(auto metrics, Metrics::create(metrics_config(model->settings_, cache, config.names[0])));
  model->metrics_ = std::make_unique<MetricsFeed>(std::move(metrics), model->settings_, loaded.engine->memory());
  return model;
}

std::uint32_t ServedModel::output_limit(std::size_t prompt_tokens) const {
  // The last token needs no row.
  const std::uint64_t room = std::min<std::uint64_t>(settings_.max_model_len, settings_.max_rows + 1);
  const std::uint64_t left = room > prompt_tokens ? room - prompt_tokens : 1;
  const std::uint64_t limit = default_max_tokens_ == 0 ? left : std::min<std::uint64_t>(left, default_max_tokens_);
  return static_cast<std::uint32_t>(limit);
}

}  // namespace kvasir::server
