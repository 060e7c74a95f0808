#include "tests/cache/churn.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/units.hpp"
#include "cache/footprint.hpp"

namespace kvasir::cache::test {
namespace {

constexpr std::uint64_t kStepsOfAMix = 2000;

KvCacheConfig config_of(const ChurnSetting& setting, const store::StorePlan& plan) {
  KvCacheConfig config;
  for (const store::GroupPlan& g : plan.groups)
    config.groups.push_back({.block_tokens = g.layout.block_tokens(),
                             .blocks = g.blocks,
                             .reach = g.reach,
                             .blocks_per_superpage = g.blocks_per_superpage});
  config.max_sequences = setting.max_sequences;
  config.max_sequence_rows = plan.max_rows(setting.step_rows);
  config.max_step_rows = setting.step_rows;
  return config;
}

}  // namespace

Churn::Churn(const ChurnSetting& setting, std::uint64_t seed)
    : setting_(setting),
      plan_(store::plan_store(setting.geometry, setting.capacity_bytes).value()),
      cache_(KvCache::create(config_of(setting, plan_)).value()),
      random_(seed) {
  KV_CHECK(setting.longest_prompt + setting.longest_answer <= cache_.max_sequence_rows(), "every request fits alone");
  head_ = draw();
}

std::uint32_t Churn::log_uniform(double low, double high) {
  return static_cast<std::uint32_t>(low * std::pow(high / low, static_cast<double>(random_.uniform())));
}

Churn::Length Churn::draw() {
  const double longest = setting_.longest_prompt;
  const bool is_long = random_.uniform() < static_cast<float>(long_share_);
  return {is_long ? log_uniform(longest / 8, longest) : log_uniform(1, longest / 16), 1 + random_.below(setting_.longest_answer)};
}

void Churn::step() {
  if (sum_.steps % kStepsOfAMix == 0) long_share_ = 0.5 * random_.below(3);
  cache_.clear_copies();
  if (random_.below(16) == 0) cancel_one();
  if (random_.below(8) == 0) fork_one();
  const std::uint64_t copies_before = cache_.copies().size();
  admit_and_measure();
  sum_.busiest_step = std::max(sum_.busiest_step, cache_.copies().size() - copies_before);
  run_rows();
  ++sum_.steps;
  sum_.sequences += cache_.sequences();
}

void Churn::cancel_one() {
  if (running_.empty()) return;
  const auto at = running_.begin() + random_.below(static_cast<std::uint32_t>(running_.size()));
  cache_.release(at->id);
  running_.erase(at);
  ++sum_.cancelled;
}

// One that may write as far as a request would; whether it fits is not the queue's affair.
void Churn::fork_one() {
  if (running_.empty()) return;
  const Running parent = running_[random_.below(static_cast<std::uint32_t>(running_.size()))];
  const std::uint64_t rows = std::max(cache_.rows(parent.id), parent.prompt) + std::uint64_t{random_.below(setting_.longest_answer)};
  const Result<SequenceId> child = cache_.fork(parent.id, std::min(rows, cache_.max_sequence_rows()));
  if (!child.ok()) return;
  running_.push_back({*child, parent.prompt});
  ++sum_.forked;
}

void Churn::admit_and_measure() {
  cache_.compact(head_.prompt, head_.answer);
  FitVerdict verdict = cache_.can_admit(head_.prompt, head_.answer);
  for (; verdict.ok(); verdict = cache_.can_admit(head_.prompt, head_.answer)) {
    running_.push_back({cache_.admit(head_.prompt, head_.answer).value(), head_.prompt});
    ++sum_.admitted;
    head_ = draw();
  }
  KV_CHECK(!never_fits(verdict.fit), "every request fits alone");
  if (verdict.fit == Fit::exhausted) measure();
}

void Churn::measure() {
  const AdmissionBudget budget = cache_.budget();
  const auto arena = static_cast<double>(plan_.arena_bytes);
  std::array<std::uint64_t, kMaxGroups> wanted_blocks{};
  std::uint64_t used = 0, wanted = 0, close = 0, free_superpages = cache_.free_superpages();
  for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
    const GroupStats stats = cache_.stats(g);
    const std::uint64_t bytes = plan_.groups[g].layout.block_bytes(), slices = plan_.groups[g].blocks_per_superpage;
    const std::uint64_t blocks = stats.pool.active + stats.claimed;
    used += blocks * bytes;
    wanted_blocks[g] = budget.groups()[g].wanted(rows_bound(head_.prompt, head_.answer), head_.prompt);
    wanted += wanted_blocks[g] * bytes;
    close += ceil_div(blocks, slices) * plan_.superpage_bytes;
    if (stats.claimed > stats.pool.free) free_superpages -= ceil_div(stats.claimed - stats.pool.free, slices);
  }
  const std::uint64_t unclaimed = plan_.arena_bytes - used, unmovable = close - used;
  const std::uint64_t withheld = wanted <= unclaimed ? unclaimed : 0, waste = std::max(withheld, unmovable);
  ++sum_.waiting;
  sum_.delayed += withheld > 0 ? 1 : 0;
  sum_.unfinished += budget.fits_compacted(wanted_blocks) ? 1 : 0;
  sum_.used += static_cast<double>(used) / arena;
  sum_.waste += static_cast<double>(waste) / arena;
  sum_.withheld += static_cast<double>(withheld) / arena;
  sum_.unmovable += static_cast<double>(unmovable) / arena;
  sum_.holes += static_cast<double>(unclaimed - free_superpages * plan_.superpage_bytes) / arena;
  sum_.most_waste = std::max(sum_.most_waste, static_cast<double>(waste) / arena);
}

// Every answer gets a row, prompts share what is left of the step; who has all of its rows ends.
void Churn::run_rows() {
  std::uint32_t left = setting_.step_rows;
  std::size_t kept = 0;
  for (const Running& r : running_) {
    const std::uint32_t rows = cache_.rows(r.id);
    const bool answering = rows >= r.prompt;
    const std::uint32_t n = rows == cache_.bound(r.id) ? 0 : answering ? 1 : std::min(r.prompt - rows, left);
    if (!answering) left -= n;
    cache_.reserve_rows(r.id, n);
    if (n > 0) cache_.commit(r.id);
    if (cache_.rows(r.id) < cache_.bound(r.id)) {
      running_[kept++] = r;
    } else {
      cache_.release(r.id);
    }
  }
  running_.resize(kept);
}

ChurnReport Churn::report() const {
  ChurnReport report = sum_;
  const double waiting = static_cast<double>(std::max<std::uint64_t>(sum_.waiting, 1));
  for (double* mean : {&report.used, &report.waste, &report.withheld, &report.unmovable, &report.holes}) *mean /= waiting;
  report.sequences /= static_cast<double>(std::max<std::uint64_t>(sum_.steps, 1));
  for (std::uint32_t g = 0; g < cache_.groups(); ++g) {
    report.moved += cache_.stats(g).moved;
    report.left_behind += cache_.stats(g).left_behind;
  }
  return report;
}

}  // namespace kvasir::cache::test
