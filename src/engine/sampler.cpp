#include "engine/sampler.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/check.hpp"
#include "base/fixed_math.hpp"
#include "base/prng.hpp"
#include "engine/ranked_candidates.hpp"
#include "engine/row_math.hpp"
#include "platform/aligned_buffer.hpp"

namespace kvasir::engine {
namespace {

// Height of the first band of candidates, in units of the temperature: e^-4 below the likeliest. Work, not results.
constexpr float kFirstBand = 4.0f;

// u in [0, 1) on a grid of 2^-53.
double uniform(const SamplingParams& params, std::uint32_t position) {
  const PhiloxCounter counter = {position, 0, params.choice, 0};
  const PhiloxKey key = {static_cast<std::uint32_t>(params.seed), static_cast<std::uint32_t>(params.seed >> 32)};
  const std::array<std::uint32_t, 4> words = philox4x32(counter, key);
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

struct Sampler::Scratch {
  explicit Scratch(std::uint32_t vocabulary)
      : ranked(vocabulary), block_max(row_blocks(vocabulary)), tokens(vocabulary), weights(vocabulary),
        ruled(vocabulary) {}

  RankedCandidates ranked;
  std::vector<float> block_max;             // [row_blocks]
  platform::AlignedArray<TokenId> tokens;   // [vocabulary] kept candidates, in order
  platform::AlignedArray<float> weights;    // [vocabulary] theirs
  platform::AlignedArray<float> ruled;      // [vocabulary] a row as its request's rules make it

  // Walks the order and keeps the prefix that the cuts leave. Returns its length (at least 1 where a candidate exists)
  // and sets `sum` to its weights added in order.
  std::size_t keep(const SamplingParams& params, std::span<const float> logits, float max, platform::Isa isa,
                   double& sum);
  // The token at u of the kept prefix / of the whole order, where nothing is cut. `likeliest` where rounding leaves none.
  TokenId draw_kept(const SamplingParams& params, std::span<const float> logits, RowMax likeliest, platform::Isa isa,
                    double u);
  TokenId draw_any(const SamplingParams& params, std::span<const float> logits, RowMax likeliest, platform::Isa isa,
                   double u);
};

std::size_t Sampler::Scratch::keep(const SamplingParams& params, std::span<const float> logits, float max,
                                   platform::Isa isa, double& sum) {
  const float scale = 1.0f / params.temperature;
  const bool limited = params.top_k > 0 && params.top_k < logits.size();
  const std::size_t most = limited ? params.top_k : logits.size();
  // Without top_k the likeliest are cut by their share of the whole vocabulary, so the walk can stop early.
  const bool nucleus = params.top_p < 1.0f;
  const double whole = limited || !nucleus ? 0 : sum_exp(logits, max, scale, isa);

  ranked.start(logits, block_max, max, kFirstBand * params.temperature);
  std::size_t kept = 0;
  sum = 0;
  while (kept < most) {
    const std::optional<Candidate> candidate = ranked.next();
    if (!candidate) break;
    const float weight = exp_f32((candidate->logit - max) * scale);
    if (kept > 0 && (weight == 0 || (!limited && weight < params.min_p))) break;
    tokens[kept] = candidate->token;
    weights[kept] = weight;
    ++kept;
    sum += static_cast<double>(weight);
    if (!limited && nucleus && sum >= static_cast<double>(params.top_p) * whole) break;
  }
  if (!limited || kept == 0) return kept;

  // top_p and min_p over the k likeliest.
  const double share = nucleus ? static_cast<double>(params.top_p) * sum : sum;
  std::size_t last = 0;
  double running = static_cast<double>(weights[0]);
  while (last + 1 < kept && running < share && weights[last + 1] >= params.min_p) {
    running += static_cast<double>(weights[++last]);
  }
  sum = running;
  return last + 1;
}

TokenId Sampler::Scratch::draw_kept(const SamplingParams& params, std::span<const float> logits, RowMax likeliest,
                                    platform::Isa isa, double u) {
  double sum = 0;
  const std::size_t kept = keep(params, logits, likeliest.value, isa, sum);
  const double target = u * sum;
  TokenId token = likeliest.token;
  double running = 0;
  for (std::size_t i = 0; i < kept && running <= target; ++i) {
    token = tokens[i];
    running += static_cast<double>(weights[i]);
  }
  return token;
}

// Walks no further than the token drawn, so the usual draw looks at a few candidates.
TokenId Sampler::Scratch::draw_any(const SamplingParams& params, std::span<const float> logits, RowMax likeliest,
                                   platform::Isa isa, double u) {
  const float scale = 1.0f / params.temperature;
  const double target = u * sum_exp(logits, likeliest.value, scale, isa);
  ranked.start(logits, block_max, likeliest.value, kFirstBand * params.temperature);
  TokenId token = likeliest.token;
  double running = 0;
  while (running <= target) {
    const std::optional<Candidate> candidate = ranked.next();
    if (!candidate) break;
    const float weight = exp_f32((candidate->logit - likeliest.value) * scale);
    if (weight == 0) break;   // none that follows weighs anything either
    token = candidate->token;
    running += static_cast<double>(weight);
  }
  return token;
}

Sampler::Sampler(std::uint32_t vocabulary, std::size_t threads, platform::Isa isa)
    : vocabulary_(vocabulary), isa_(isa) {
  KV_CHECK(vocabulary > 0 && threads > 0, "a vocabulary and a thread");
  for (std::size_t t = 0; t < threads; ++t) scratch_.push_back(std::make_unique<Scratch>(vocabulary));
}

Sampler::~Sampler() = default;

std::uint64_t Sampler::bytes(std::uint32_t vocabulary, std::size_t threads) {
  const std::uint64_t one = RankedCandidates::bytes(vocabulary) + row_blocks(vocabulary) * sizeof(float) +
                            std::uint64_t{vocabulary} * (sizeof(TokenId) + 2 * sizeof(float));
  return threads * one;
}

void Sampler::sample(std::span<SampleRow> rows, platform::ThreadPool& pool) {
  KV_CHECK(pool.threads() <= scratch_.size(), "a scratch for every thread");
  if (rows.size() <= 1) {   // waking threads costs more than it gains
    for (SampleRow& row : rows) sample_row(row, *scratch_[0]);
    return;
  }
  std::atomic<std::size_t> next{0};   // rows differ in cost; which thread takes one does not show
  pool.run([&](std::size_t thread) {
    for (std::size_t i = next.fetch_add(1); i < rows.size(); i = next.fetch_add(1)) {
      sample_row(rows[i], *scratch_[thread]);
    }
  });
}

// The token that follows; leaves the block maxima of the row it chose from.
TokenId Sampler::choose(const SampleRow& row, Scratch& scratch) const {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const SamplingParams& params = *row.params;
  std::span<const float> logits = row.logits;
  if (row.rules != nullptr) {
    row.rules->apply(row.logits, scratch.ruled.span());
    logits = scratch.ruled.span();
  }
  RowMax best = row_max(logits, scratch.block_max);
  if (row.rules != nullptr && best.value == kNothing) {   // bans left nothing: they give way
    row.rules->apply_without_bans(row.logits, scratch.ruled.span());
    best = row_max(logits, scratch.block_max);
    if (best.value == kNothing) return row.rules->lowest_allowed();
  }
  if (params.greedy()) return best.token;
  const double u = uniform(params, row.position);
  const bool uncut = (params.top_k == 0 || params.top_k >= vocabulary_) && params.top_p >= 1.0f && params.min_p <= 0.0f;
  return uncut ? scratch.draw_any(params, logits, best, isa_, u) : scratch.draw_kept(params, logits, best, isa_, u);
}

void Sampler::sample_row(SampleRow& row, Scratch& scratch) const {
  KV_CHECK(row.logits.size() == vocabulary_, "a row has a logit for every token");
  const SamplingParams& params = *row.params;
  const bool given = row.given >= 0;
  row.token = given ? row.given : choose(row, scratch);
  row.rank = given ? rank_of(row.logits, row.given) : 0;

  row.top_count = 0;
  if (params.logprobs < 0) return;
  const RowMax best = row_max(row.logits, scratch.block_max);   // of the raw row, whatever was chosen from
  const double sum = sum_exp(row.logits, best.value, 1.0f, isa_);
  const auto log_of = [&](float logit) { return static_cast<float>(log_probability(logit, best.value, sum)); };
  row.logprob = log_of(row.logits[static_cast<std::size_t>(row.token)]);
  scratch.ranked.start(row.logits, scratch.block_max, best.value, kFirstBand);
  while (row.top_count < static_cast<std::uint32_t>(params.logprobs)) {
    const std::optional<Candidate> candidate = scratch.ranked.next();
    if (!candidate) break;
    row.top[row.top_count++] = {candidate->token, log_of(candidate->logit)};
  }
}

}  // namespace kvasir::engine
