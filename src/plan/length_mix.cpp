#include "plan/length_mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvasir::plan {

double LengthMix::weight() const {
  double sum = 0;
  for (const SequenceLength& one : lengths) sum += one.weight;
  return sum;
}

std::uint64_t LengthMix::longest() const {
  std::uint64_t most = 0;
  for (const SequenceLength& one : lengths) most = std::max(most, one.length());
  return most;
}

MixSummary summarize(const LengthMix& mix) {
  MixSummary out;
  const double all = mix.weight();
  std::vector<std::pair<std::uint64_t, double>> ascending;
  for (const SequenceLength& one : mix.lengths) {
    out.mean_prompt += static_cast<double>(one.prompt) * one.weight;
    out.mean_output += static_cast<double>(one.output) * one.weight;
    if (one.weight > 0) ascending.emplace_back(one.length(), one.weight);
  }
  out.mean = (out.mean_prompt + out.mean_output) / all;
  out.mean_prompt /= all;
  out.mean_output /= all;
  std::sort(ascending.begin(), ascending.end());
  out.longest = ascending.back().first;
  const std::pair<double, std::uint64_t*> wanted[] = {
      {0.5, &out.p50}, {0.9, &out.p90}, {0.95, &out.p95}, {0.99, &out.p99}};
  for (const auto& [share, place] : wanted) {
    double below = 0;
    *place = out.longest;  // if rounding leaves the last sum short
    for (const auto& [length, weight] : ascending) {
      below += weight;
      if (below < share * all) continue;
      *place = length;
      break;
    }
  }
  return out;
}

Result<LengthMix> mix_of(const trace::Trace& trace) {
  if (trace.requests.size() > kMaxMixLengths)
    return Error{ErrorCode::bad_input,
                 fmt::format("the trace has more than {} requests, valid: at most so many", kMaxMixLengths)};
  LengthMix mix;
  mix.apart = true;
  mix.lengths.reserve(trace.requests.size());
  for (const trace::TraceRequest& request : trace.requests) {
    mix.lengths.push_back({request.input_tokens, request.output_tokens, 1});
    if (trace.timed) mix.arrivals_s.push_back(request.arrival_s);
  }
  return mix;
}

}  // namespace kvasir::plan
