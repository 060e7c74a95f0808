#include "quality/perplexity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/fixed_math.hpp"
#include "engine/row_math.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::quality {
namespace {

using engine::PoolConfig;

constexpr std::uint64_t kMostLogitsBytes = std::uint64_t{128} << 20;

// Adds up what the scored positions say.
class Score {
 public:
  Score(std::uint32_t vocabulary, platform::Isa isa) : block_max_(engine::row_blocks(vocabulary)), isa_(isa) {}

  void add(std::span<const float> logits, TokenId token) {
    const float max = engine::row_max(logits, block_max_).value;
    const double sum = engine::sum_exp(logits, max, 1.0f, isa_);
    const double nll = -engine::log_probability(logits[static_cast<std::size_t>(token)], max, sum);
    sum_ += nll;
    sum_of_squares_ += nll * nll;
    ++count_;
  }

  std::uint64_t count() const { return count_; }
  double mean() const { return sum_ / static_cast<double>(count_); }
  double standard_error() const {
    if (count_ < 2) return 0;
    const auto n = static_cast<double>(count_);
    return std::sqrt(std::max(0.0, sum_of_squares_ / n - mean() * mean()) / (n - 1));
  }

 private:
  std::vector<float> block_max_;
  platform::Isa isa_;
  double sum_ = 0, sum_of_squares_ = 0;
  std::uint64_t count_ = 0;
};

// What one window needs of an engine, the rest as given.
Result<PoolConfig> window_config(const PoolConfig& given, std::uint32_t context, const model::Model& model) {
  const std::uint32_t most = model.geometry().context;
  if (context < 4 || context > most) {
    return Error{ErrorCode::bad_input,
                 fmt::format("context is {}, valid: 4 to {} tokens (the model's context)", context, most)};
  }
  PoolConfig config = given;
  config.max_model_len = context;
  config.max_sequences = 1;
  config.kv_cache_bytes = 0;   // one window
  // As many rows a step as given, but for a vocabulary so large that their logits would dwarf everything else.
  const std::uint64_t row_bytes = std::uint64_t{model.geometry().vocabulary} * sizeof(float);
  const auto most_rows = static_cast<std::uint32_t>(std::max<std::uint64_t>(16, kMostLogitsBytes / row_bytes));
  config.max_batched_tokens = std::min({given.max_batched_tokens, context, most_rows});
  config.logits_rows = config.max_batched_tokens;
  return config;
}

// Runs one window to its end. False: stopped.
Result<bool> run_window(engine::Engine& engine, std::span<const TokenId> window, const std::function<bool()>& stop) {
  engine::GenerateRequest request;
  request.prompt.assign(window.begin(), window.end());
  request.max_tokens = 0;
  request.prompt_logits = true;
  request.prompt_logits_from = static_cast<std::uint32_t>(window.size() / 2);
  KV_ASSIGN(const RequestId id, engine.submit(std::move(request)));
  std::vector<engine::TokenOutput> out;
  while (engine.has_work()) {
    if (stop && stop()) {
      engine.cancel(id);
      return false;
    }
    engine.step(out);
  }
  return true;
}

}  // namespace

Result<PerplexityResult> perplexity(std::shared_ptr<const model::Model> model,
                                    std::shared_ptr<const text::Tokenizer> tokenizer, std::string_view text,
                                    const PerplexityOptions& options, const PoolConfig& given) {
  KV_CHECK(model != nullptr && tokenizer != nullptr, "perplexity needs a model and its tokenizer");
  const std::uint32_t context = options.context;
  KV_ASSIGN(const PoolConfig config, window_config(given, context, *model));
  KV_ASSIGN(std::vector<TokenId> tokens, tokenizer->encode(text, {.add_special = true, .parse_special = false}));
  if (tokens.size() < 2 * std::size_t{context}) {
    return Error{ErrorCode::bad_input, fmt::format("the text has {} tokens, valid: at least {} (two windows of {})",
                                                   tokens.size(), 2 * std::size_t{context}, context)};
  }
  std::uint64_t windows = tokens.size() / context;
  if (options.max_windows > 0) windows = std::min(windows, options.max_windows);

  KV_ASSIGN(const std::unique_ptr<engine::Engine> engine, engine::Engine::create(model, tokenizer, config));
  Score score(model->geometry().vocabulary, model->options().isa);
  std::span<TokenId> window;
  engine->set_logits_observer([&](RequestId, std::uint32_t position, std::span<const float> logits) {
    if (position + 1 < context) score.add(logits, window[position + 1]);
  });
  for (std::uint64_t w = 0; w < windows; ++w) {
    window = std::span(tokens).subspan(w * context, context);
    if (tokenizer->adds_bos() && tokenizer->bos()) window[0] = *tokenizer->bos();
    KV_ASSIGN(const bool done, run_window(*engine, window, options.stop));
    if (!done) return Error{ErrorCode::cancelled, fmt::format("stopped after {} of {} windows", w, windows)};
    if (options.progress) options.progress({w + 1, windows, exp_f64(score.mean())});
  }

  PerplexityResult result;
  result.nll = score.mean();
  result.perplexity = exp_f64(result.nll);
  result.nll_stderr = score.standard_error();
  result.tokens = score.count();
  result.windows = windows;
  result.effective = engine->effective();
  return result;
}

}  // namespace kvasir::quality
