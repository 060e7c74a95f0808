#include "plan/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "base/check.hpp"
#include "base/units.hpp"

namespace kvasir::plan {
namespace {

// What is held between two events.
struct Interval {
  double seconds;
  double sequences, tokens, blocks, bytes;
};

template <double Interval::*Value>
TimePercentiles percentiles_of(std::vector<Interval>& intervals, double seconds) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.*Value < b.*Value; });
  TimePercentiles out;
  for (const Interval& one : intervals) out.mean += one.*Value * one.seconds / seconds;
  out.max = intervals.back().*Value;
  out.p50 = out.p95 = out.p99 = out.max;  // if rounding leaves the last sum short
  const std::pair<double, double*> wanted[] = {{0.5, &out.p50}, {0.95, &out.p95}, {0.99, &out.p99}};
  std::size_t next = 0;
  double below = 0;
  for (const Interval& one : intervals) {
    below += one.seconds;
    for (; next < std::size(wanted) && below >= wanted[next].first * seconds; ++next) *wanted[next].second = one.*Value;
  }
  return out;
}

class Simulation {
 public:
  Simulation(const ArrivalPlan& plan, const KvGroups& kv, std::uint32_t block_tokens, const ServiceModel& service)
      : plan_(plan), kv_(kv), block_tokens_(block_tokens), service_(service) {}

  Result<Occupancy> run() {
    std::size_t arrived = 0;
    while (arrived < plan_.arrivals.size() || !live_.empty()) {
      const bool arrives =
          arrived < plan_.arrivals.size() && (live_.empty() || plan_.arrivals[arrived].at_s <= live_.top().at_s);
      const double at_s = arrives ? plan_.arrivals[arrived].at_s : live_.top().at_s;
      pass_until(std::min(at_s, plan_.to_s));
      if (at_s >= plan_.to_s) break;
      KV_TRY(arrives ? begin(plan_.arrivals[arrived++]) : step());
    }
    pass_until(plan_.to_s);
    return finish();
  }

 private:
  // A sequence and what happens to it next.
  struct Live {
    double at_s = 0;  // the next event
    double decode_from_s = 0;
    SequenceLength sequence;
    std::uint64_t length = 0;  // tokens whose blocks it holds
    std::uint64_t bytes = 0;
    bool ends = false;                                                     // at the next event
    bool operator<(const Live& other) const { return at_s > other.at_s; }  // earliest on top
  };

  Status begin(const ArrivalPlan::Arrival& arrival) {
    Live live;
    live.sequence = arrival.sequence;
    live.decode_from_s = arrival.at_s + service_.prefill_s(arrival.sequence);
    live.at_s = live.decode_from_s;
    ++sequences_;
    tokens_at_0_ += static_cast<double>(live.sequence.prompt);
    KV_ASSIGN(bytes_, checked_add(bytes_, kv_.state_bytes));
    KV_TRY(hold(live, live.sequence.prompt));
    live_.push(live);
    return ok_status();
  }

  Status step() {
    Live live = live_.top();
    live_.pop();
    const bool begins_answer = live.length == live.sequence.prompt;
    if (live.ends) {
      give_back(live);
      return ok_status();
    }
    if (begins_answer) start_growing(live, 1);
    KV_TRY(hold(live, begins_answer ? live.length + 1 : round_up(live.length, block_tokens_) + 1));
    // The next one is the first token of the next block, or the end of the last token's interval.
    const std::uint64_t next = round_up(live.length, block_tokens_) + 1;
    live.ends = next > live.sequence.length();
    const std::uint64_t intervals = live.ends ? live.sequence.output : next - live.sequence.prompt - 1;
    live.at_s = live.decode_from_s + static_cast<double>(intervals) * service_.itl_s;
    live_.push(live);
    return ok_status();
  }

  Status hold(Live& live, std::uint64_t length) {
    KV_ASSIGN(const std::uint64_t bytes, kv_.block_bytes(length));
    for (const PlannedGroup& g : kv_.groups)
      blocks_ += g.blocks(length) - (live.length == 0 ? 0 : g.blocks(live.length));
    KV_ASSIGN(bytes_, checked_add(bytes_, bytes - live.bytes));
    live.bytes = bytes;
    live.length = length;
    return ok_status();
  }

  void give_back(const Live& live) {
    --sequences_;
    for (const PlannedGroup& g : kv_.groups) blocks_ -= g.blocks(live.length);
    bytes_ -= live.bytes + kv_.state_bytes;
    start_growing(live, -1);
    tokens_at_0_ -= static_cast<double>(live.sequence.prompt);
  }

  // Half a token ahead of the line that starts at the prompt's length: a token counts from the beginning of its
  // interval.
  void start_growing(const Live& live, double sign) {
    tokens_per_s_ += sign / service_.itl_s;
    tokens_at_0_ += sign * (0.5 - live.decode_from_s / service_.itl_s);
  }

  void pass_until(double at_s) {
    const double from = std::max(now_s_, plan_.from_s);
    if (at_s > from) {
      const double tokens = sequences_ == 0 ? 0 : tokens_at_0_ + tokens_per_s_ * (from + at_s) / 2;
      intervals_.push_back({at_s - from, static_cast<double>(sequences_), tokens, static_cast<double>(blocks_),
                            static_cast<double>(bytes_)});
    }
    now_s_ = std::max(now_s_, at_s);
  }

  Occupancy finish() {
    Occupancy out;
    out.arrivals = plan_.arrivals.size();
    out.seconds = plan_.to_s - plan_.from_s;
    out.sequences = percentiles_of<&Interval::sequences>(intervals_, out.seconds);
    out.tokens = percentiles_of<&Interval::tokens>(intervals_, out.seconds);
    out.blocks = percentiles_of<&Interval::blocks>(intervals_, out.seconds);
    out.bytes = percentiles_of<&Interval::bytes>(intervals_, out.seconds);
    return out;
  }

  const ArrivalPlan& plan_;
  const KvGroups& kv_;
  std::uint64_t block_tokens_;
  ServiceModel service_;
  std::priority_queue<Live> live_;
  std::vector<Interval> intervals_;
  double now_s_ = 0;
  std::uint64_t sequences_ = 0, blocks_ = 0, bytes_ = 0;
  double tokens_at_0_ = 0, tokens_per_s_ = 0;  // tokens held are a line between events
};

}  // namespace

Result<Occupancy> simulate_occupancy(const ArrivalPlan& plan, const KvGroups& kv, std::uint32_t block_tokens,
                                     const ServiceModel& service) {
  KV_CHECK(plan.to_s > plan.from_s, "something is counted");
  std::uint64_t events = 0;
  for (const ArrivalPlan::Arrival& arrival : plan.arrivals) events += 3 + arrival.sequence.output / block_tokens;
  if (events > kMaxEvents) {
    return Error{
        ErrorCode::bad_input,
        fmt::format("the simulation has {} blocks and sequences to follow, valid: at most {}", events, kMaxEvents)};
  }
  return Simulation(plan, kv, block_tokens, service).run();
}

}  // namespace kvasir::plan
