#include "cli/no_cache_bench.hpp"

#include <fmt/format.h>

#include <chrono>

#include "cli/bench_cases.hpp"

namespace kvasir::cli {
namespace {

// Runs one greedy request to its end; adds its steps to `way` and its tokens to `tokens`.
Status generate(engine::Engine& engine, std::vector<TokenId> prompt, std::uint32_t max_tokens, WayCount& way,
                std::vector<TokenId>& tokens, const platform::InterruptScope& interrupt) {
  engine::GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  const auto begin = std::chrono::steady_clock::now();
  KV_TRY(engine.submit(std::move(request)));
  std::vector<engine::TokenOutput> outputs;
  outputs.reserve(1);
  std::uint64_t position = 0;   // of the step's first row: the request is alone
  while (engine.has_work()) {
    if (interrupt.pending() != 0) return Error{ErrorCode::cancelled, "interrupted"};
    const engine::StepReport step = engine.step(outputs);
    const std::uint64_t rows = std::uint64_t{step.prefill_tokens} + step.decode_tokens;
    way.rows += rows;
    for (std::uint64_t r = 0; r < rows; ++r) way.pairs += position + r + 1;   // row r sees itself and all before it
    position += rows;
    for (const engine::TokenOutput& output : outputs) tokens.push_back(output.token);
  }
  way.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ok_status();
}

Status compare_counts(const char* name, const WayCount& counted, const WayCount& closed) {
  if (counted.rows == closed.rows && counted.pairs == closed.pairs) return ok_status();
  return Error{ErrorCode::internal, fmt::format("{}: the steps computed {} rows and {} pairs, the closed form says {} and {}", name,
                                                counted.rows, counted.pairs, closed.rows, closed.pairs)};
}

}  // namespace

WayCount cached_closed_form(std::uint64_t length) { return {length, length * (length + 1) / 2, 0}; }

WayCount uncached_closed_form(std::uint64_t length) {
  return {length * (length + 1) / 2, length * (length + 1) * (length + 2) / 6, 0};
}

double projection_flops_per_row(const artifact::ModelGeometry& g) {
  double weights = 0;
  for (const std::uint32_t kv_heads : g.kv_heads) {
    const double query = double(g.heads) * g.head_dim, key = double(kv_heads) * g.head_dim;
    weights += g.width * (2 * query + 2 * key + 3.0 * g.feed_forward);   // q and o, k and v, gate, up and down
  }
  return 2 * weights;
}

double attention_flops_per_pair(const artifact::ModelGeometry& g) { return 4.0 * g.layers * g.heads * g.head_dim; }

Result<NoCacheResult> run_no_cache_bench(const std::shared_ptr<const model::Model>& model, std::uint32_t length,
                                         const engine::PoolConfig& given, const platform::InterruptScope& interrupt) {
  engine::PoolConfig config = given;
  config.max_sequences = 1;
  config.max_model_len = length + 1;
  KV_ASSIGN(const std::unique_ptr<engine::Engine> engine, engine::Engine::create(model, nullptr, config));
  const std::vector<TokenId> first = random_prompt(length, 1, model->geometry().vocabulary);

  // The engine samples one token more than it feeds: `length` fed rows give `length` tokens.
  NoCacheResult result;
  result.length = length;
  WayCount warm_up;
  std::vector<TokenId> ignored, cached, uncached;
  KV_TRY(generate(*engine, random_prompt(length + 1, length, model->geometry().vocabulary), 1, warm_up, ignored, interrupt));
  KV_TRY(generate(*engine, first, length, result.cached, cached, interrupt));
  std::vector<TokenId> so_far = first;
  for (std::uint32_t n = 0; n < length; ++n) {
    KV_TRY(generate(*engine, so_far, 1, result.uncached, uncached, interrupt));
    so_far.push_back(uncached.back());
  }
  if (cached != uncached) return Error{ErrorCode::internal, fmt::format("{} tokens: the answers with and without the cache differ", length)};
  KV_TRY(compare_counts("with the cache", result.cached, cached_closed_form(length)));
  KV_TRY(compare_counts("without", result.uncached, uncached_closed_form(length)));
  return result;
}

}  // namespace kvasir::cli
