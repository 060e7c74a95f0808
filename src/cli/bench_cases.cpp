#include "cli/bench_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>

#include "base/units.hpp"

namespace kvasir::cli {
namespace {

constexpr TokenId kFirstId = 300, kEndId = 40'000;   // ordinary words in every vocabulary of the field
constexpr std::uint32_t kMaxSequences = 4096, kMaxPrompt = 1u << 20;

bool parse_part(std::string_view text, std::uint32_t limit, std::uint32_t& value) {
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  return status == std::errc{} && rest == end && value >= 1 && value <= limit;
}

struct RunTimes {
  double first_s = 0;               // until every sequence had its first token
  double rest_s = 0;                // from there to the last token
  std::uint64_t rest_tokens = 0;    // that came in rest_s
};

Result<RunTimes> run_once(engine::Engine& engine, const BenchCase& shape, std::uint32_t new_tokens,
                          const platform::InterruptScope& interrupt) {
  const std::uint32_t vocabulary = engine.model().geometry().vocabulary;
  std::vector<engine::GenerateRequest> requests(shape.sequences);
  for (std::uint32_t s = 0; s < shape.sequences; ++s) {
    requests[s].prompt = random_prompt(shape.sequences * 1'000'000ull + shape.prompt * 1'000ull + s, shape.prompt, vocabulary);
    requests[s].max_tokens = new_tokens;
    requests[s].ignore_eos = true;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (engine::GenerateRequest& request : requests) KV_TRY(engine.submit(std::move(request)));
  RunTimes times;
  std::uint32_t begun = 0;
  std::vector<engine::TokenOutput> outputs;
  outputs.reserve(shape.sequences);
  while (engine.has_work()) {
    if (interrupt.pending() != 0) return Error{ErrorCode::cancelled, "interrupted"};
    const bool all_begun = begun == shape.sequences;
    engine.step(outputs);
    if (all_begun) times.rest_tokens += outputs.size();
    for (const engine::TokenOutput& output : outputs) begun += output.completion_tokens == 1 ? 1 : 0;
    if (!all_begun && begun == shape.sequences) times.first_s = elapsed();
  }
  times.rest_s = elapsed() - times.first_s;
  return times;
}

// Bytes of whole blocks for all sequences at their longest.
Result<std::uint64_t> cache_bytes(const model::Model& model, const BenchCase& shape, const engine::PoolConfig& config) {
  const format::KvGeometry geometry = model.geometry().kv_geometry(config.kv_format, config.block_tokens);
  std::uint64_t total = 0;
  for (const format::CacheGroup& group : geometry.groups) {
    KV_ASSIGN(const format::BlockLayout layout, format::BlockLayout::create(group));
    const std::uint64_t blocks = ceil_div(std::uint64_t{shape.prompt} + shape.new_tokens(), config.block_tokens) * shape.sequences;
    KV_ASSIGN(const std::uint64_t bytes, checked_mul(blocks, layout.block_bytes()));
    total += bytes;
  }
  return total;
}

}  // namespace

Result<std::vector<BenchCase>> parse_bench_cases(const std::string& text) {
  if (text == "peers") return std::vector<BenchCase>{{1, 512}, {1, 4096}, {1, 7900}, {8, 128}, {32, 128}, {32, 512}};
  std::vector<BenchCase> cases;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const std::size_t cross = part.find('x');
    BenchCase shape;
    if (cross == std::string_view::npos || !parse_part(part.substr(0, cross), kMaxSequences, shape.sequences) ||
        !parse_part(part.substr(cross + 1), kMaxPrompt, shape.prompt)) {
      return Error{ErrorCode::usage, fmt::format("--cases: '{}' is not a case; valid: peers, or SxP[,SxP...] with 1 to {} sequences of 1 to {} "
                                                 "prompt tokens, such as 1x512,8x128", part, kMaxSequences, kMaxPrompt)};
    }
    cases.push_back(shape);
    begin = end + 1;
  }
  return cases;
}

std::vector<TokenId> random_prompt(std::uint64_t seed, std::uint32_t count, std::uint32_t vocabulary) {
  const auto end = std::min<std::uint64_t>(kEndId, vocabulary);
  const std::uint64_t first = end > kFirstId ? kFirstId : 0;
  std::mt19937_64 random(seed);
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>(first + random() % (end - first));
  return ids;
}

Result<BenchResult> run_bench_case(const std::shared_ptr<const model::Model>& model, const BenchCase& shape, std::uint32_t repeat,
                                   const engine::PoolConfig& given, const platform::InterruptScope& interrupt) {
  engine::PoolConfig config = given;
  config.max_sequences = shape.sequences;
  config.max_batched_tokens = std::max(config.max_batched_tokens, shape.sequences);
  config.max_model_len = shape.prompt + shape.new_tokens();
  if (config.kv_cache_bytes == 0) {
    KV_ASSIGN(config.kv_cache_bytes, cache_bytes(*model, shape, config));
  }
  KV_ASSIGN(const std::unique_ptr<engine::Engine> engine, engine::Engine::create(model, nullptr, config));
  KV_TRY(run_once(*engine, shape, 2, interrupt));
  BenchResult result;
  result.shape = shape;
  for (std::uint32_t i = 0; i < repeat; ++i) {
    KV_ASSIGN(const RunTimes times, run_once(*engine, shape, shape.new_tokens(), interrupt));
    result.prefill_per_s = std::max(result.prefill_per_s, static_cast<double>(shape.sequences) * shape.prompt / times.first_s);
    result.decode_per_s = std::max(result.decode_per_s, static_cast<double>(times.rest_tokens) / times.rest_s);
  }
  result.effective = engine->effective();
  return result;
}

}  // namespace kvasir::cli
