#include "load/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "platform/clock.hpp"
#include "stats/quantile.hpp"
#include "stats/quantile_interval.hpp"

namespace kvasir::load {
namespace {

using platform::seconds_between;

constexpr std::uint64_t kBootstrapWorkMax = 20'000'000;  // values walked: well under a second
constexpr std::uint32_t kResamplesMin = 100;

// Values of a latency, with how many each request gave.
struct Sample {
  std::vector<double> values;
  std::vector<std::uint32_t> sizes;

  void add(double value) {
    values.push_back(value);
    sizes.push_back(1);
  }
  void add(const std::vector<double>& more) {
    values.insert(values.end(), more.begin(), more.end());
    sizes.push_back(static_cast<std::uint32_t>(more.size()));
  }
};

Distribution describe(const Sample& sample, const MetricOptions& options) {
  Distribution result;
  for (const double percent : options.percents) result.percentiles.push_back({percent, {}});
  if (sample.values.empty()) return result;
  const stats::Moments moments = stats::moments(sample.values);
  result.count = moments.count;
  result.mean = moments.mean;
  result.deviation = moments.deviation;
  std::vector<double> probabilities = {0.5};
  for (const double percent : options.percents) probabilities.push_back(percent / 100);
  stats::BootstrapOptions bootstrap = options.bootstrap;
  const std::uint64_t affordable = std::max<std::uint64_t>(kResamplesMin, kBootstrapWorkMax / sample.values.size());
  bootstrap.resamples = static_cast<std::uint32_t>(std::min<std::uint64_t>(bootstrap.resamples, affordable));
  const auto intervals = stats::quantile_intervals(sample.values, sample.sizes, probabilities, bootstrap);
  KV_CHECK(intervals.ok(), "latencies are finite and options were checked");
  result.median = (*intervals)[0];
  for (std::size_t i = 0; i < result.percentiles.size(); ++i) result.percentiles[i].seconds = (*intervals)[i + 1];
  return result;
}

// In nanoseconds, so that a latency of exactly the limit meets it.
bool within(const Objectives& objectives, const RequestRecord& record, std::uint64_t queue_ns) {
  const auto met = [](const std::optional<double>& limit_ms, double ns) { return !limit_ms || ns <= *limit_ms * 1e6; };
  const auto between = [](std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from); };
  const std::uint64_t first = record.token_ns.front(), last = record.token_ns.back(), from = record.sent_ns - queue_ns;
  const double tpot =
      record.output_tokens > 1 ? between(first, last) / static_cast<double>(record.output_tokens - 1) : 0;
  return met(objectives.ttft_ms, between(from, first)) && met(objectives.tpot_ms, tpot) &&
         met(objectives.e2el_ms, between(from, last));
}

std::uint64_t best_second(const std::vector<const RequestRecord*>& good) {
  std::uint64_t first = UINT64_MAX, last = 0;
  for (const RequestRecord* record : good) {
    first = std::min(first, record->sent_ns);
    last = std::max(last, record->token_ns.back());
  }
  if (good.empty()) return 0;
  std::vector<std::uint64_t> seconds((last - first) / 1'000'000'000 + 1);
  for (const RequestRecord* record : good) {
    for (const std::uint64_t ns : record->token_ns) ++seconds[(ns - first) / 1'000'000'000];
  }
  return *std::ranges::max_element(seconds);
}

// Requests count in [sent, last token).
std::uint64_t most_at_once(const std::vector<const RequestRecord*>& good) {
  std::vector<std::pair<std::uint64_t, int>> events;
  for (const RequestRecord* record : good) {
    events.emplace_back(record->sent_ns, 1);
    events.emplace_back(record->token_ns.back(), -1);
  }
  std::ranges::sort(events);
  std::int64_t running = 0, most = 0;
  for (const auto& [ns, change] : events) most = std::max(most, running += change);
  return static_cast<std::uint64_t>(most);
}

void describe_all(const std::vector<const RequestRecord*>& good, const MetricOptions& options, Metrics& metrics) {
  Sample ttft, tpot, itl, e2el, queue, ttft_queued, e2el_queued;
  for (const RequestRecord* record : good) {
    const double queued = seconds_between(record->scheduled_ns, record->sent_ns);
    ttft.add(ttft_s(*record));
    if (record->output_tokens > 1) tpot.add(tpot_s(*record));
    itl.add(gaps_s(*record));
    e2el.add(e2el_s(*record));
    queue.add(queued);
    ttft_queued.add(ttft_s(*record) + queued);
    e2el_queued.add(e2el_s(*record) + queued);
  }
  metrics.ttft = describe(ttft, options);
  metrics.tpot = describe(tpot, options);
  metrics.itl = describe(itl, options);
  metrics.e2el = describe(e2el, options);
  metrics.client_queue_time = describe(queue, options);
  metrics.ttft_including_client_queue = describe(ttft_queued, options);
  metrics.e2el_including_client_queue = describe(e2el_queued, options);
}

}  // namespace

double ttft_s(const RequestRecord& record) { return seconds_between(record.sent_ns, record.token_ns.front()); }

double tpot_s(const RequestRecord& record) {
  if (record.output_tokens <= 1) return 0;
  return seconds_between(record.token_ns.front(), record.token_ns.back()) /
         static_cast<double>(record.output_tokens - 1);
}

double e2el_s(const RequestRecord& record) { return seconds_between(record.sent_ns, record.token_ns.back()); }

std::vector<double> gaps_s(const RequestRecord& record) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < record.token_ns.size(); ++i)
    gaps.push_back(seconds_between(record.token_ns[i - 1], record.token_ns[i]));
  return gaps;
}

Result<Objectives> parse_objectives(const std::vector<std::string>& words) {
  Objectives objectives;
  for (const std::string& word : words) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string name = word.substr(0, colon), value = word.substr(std::min(colon + 1, word.size()));
    double ms = 0;
    const auto [rest, status] = std::from_chars(value.data(), value.data() + value.size(), ms);
    std::optional<double>* slot = name == "ttft"   ? &objectives.ttft_ms
                                  : name == "tpot" ? &objectives.tpot_ms
                                  : name == "e2el" ? &objectives.e2el_ms
                                                   : nullptr;
    if (slot == nullptr || value.empty() || status != std::errc{} || rest != value.data() + value.size() ||
        !(ms >= 0) || !std::isfinite(ms)) {
      return Error{
          ErrorCode::usage,
          fmt::format("'{}' is no service level objective; valid: ttft:MS, tpot:MS, e2el:MS, as ttft:500 tpot:50",
                      word)};
    }
    if (*slot)
      return Error{ErrorCode::usage, fmt::format("the objective '{}' is given twice: {} and {}", name, **slot, value)};
    *slot = ms;
  }
  return objectives;
}

Metrics compute_metrics(const RunRecord& run, const MetricOptions& options) {
  Metrics metrics;
  std::vector<const RequestRecord*> good;
  std::uint64_t in_time = 0, in_time_from_schedule = 0;
  for (const RequestRecord& record : run.requests) {
    if (!record.good()) {
      ++metrics.failed;
      ++metrics.errors[record.error_kind];
      continue;
    }
    good.push_back(&record);
    metrics.input_tokens += record.input_tokens;
    metrics.output_tokens += record.output_tokens;
    metrics.cached_tokens += record.cached_tokens;
    in_time += within(options.objectives, record, 0) ? 1 : 0;
    in_time_from_schedule += within(options.objectives, record, record.sent_ns - record.scheduled_ns) ? 1 : 0;
  }
  metrics.completed = good.size();
  metrics.duration_s = seconds_between(run.started_ns, run.ended_ns);
  const double per_second = metrics.duration_s > 0 ? 1 / metrics.duration_s : 0;
  metrics.request_throughput = static_cast<double>(metrics.completed) * per_second;
  metrics.output_throughput = static_cast<double>(metrics.output_tokens) * per_second;
  metrics.total_token_throughput = static_cast<double>(metrics.input_tokens + metrics.output_tokens) * per_second;
  metrics.request_goodput = static_cast<double>(in_time) * per_second;
  metrics.request_goodput_from_schedule = static_cast<double>(in_time_from_schedule) * per_second;
  metrics.max_output_tokens_per_s = best_second(good);
  metrics.max_concurrent_requests = most_at_once(good);
  describe_all(good, options, metrics);
  return metrics;
}

}  // namespace kvasir::load
