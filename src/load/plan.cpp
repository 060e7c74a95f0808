#include "load/plan.hpp"

#include <algorithm>
#include <cmath>

namespace kvasir::load {
namespace {

// As `vllm bench serve`: the bounds rounded outwards, both included.
std::uint32_t draw_length(std::uint32_t length, double ratio, PhiloxSequence& draws) {
  const double low = std::max(1.0, std::floor(length * (1 - ratio))),
               high = std::max(1.0, std::ceil(length * (1 + ratio)));
  return static_cast<std::uint32_t>(low) + draws.below(static_cast<std::uint32_t>(high - low) + 1);
}

std::uint32_t scaled(std::uint32_t length, double scale) {
  const double value = std::clamp(std::round(length * scale), 1.0, static_cast<double>(trace::kMaxTokens));
  return static_cast<std::uint32_t>(value);
}

}  // namespace

std::size_t Plan::requests() const {
  std::size_t count = 0;
  for (const Conversation& conversation : conversations) count += conversation.turns.size();
  return count;
}

Plan plan_random(std::size_t conversations, const ArrivalOptions& arrivals, const LengthOptions& lengths,
                 const TurnOptions& turns) {
  const std::vector<double> times = draw_arrivals(conversations, arrivals);
  PhiloxSequence draws(lengths.seed, 0x6c656e67);
  Plan plan;
  plan.conversations.resize(conversations);
  for (std::size_t i = 0; i < conversations; ++i) {
    plan.conversations[i].arrival_s = times[i];
    for (std::uint32_t turn = 0; turn < turns.turns; ++turn) {
      const std::uint32_t input = draw_length(lengths.input_tokens, lengths.range_ratio, draws);
      const std::uint32_t output = draw_length(lengths.output_tokens, lengths.range_ratio, draws);
      plan.conversations[i].turns.push_back({input, output, turn == 0 ? 0 : turns.think_s});
    }
  }
  return plan;
}

Plan plan_trace(const trace::Trace& trace, std::size_t requests, const ArrivalOptions& arrivals,
                const TraceOptions& options) {
  const std::size_t count = std::min(requests, trace.requests.size());
  std::vector<double> times;
  if (!options.own_arrivals) times = draw_arrivals(count, arrivals);
  Plan plan;
  if (trace.block_tokens > 0) plan.block_tokens = scaled(trace.block_tokens, options.length_scale);
  for (std::size_t i = 0; i < count; ++i) {
    const trace::TraceRequest& request = trace.requests[i];
    Conversation conversation;
    conversation.arrival_s = options.own_arrivals ? request.arrival_s * options.time_scale : times[i];
    conversation.turns = {
        {scaled(request.input_tokens, options.length_scale), scaled(request.output_tokens, options.length_scale), 0}};
    conversation.block_ids = request.block_ids;
    plan.conversations.push_back(std::move(conversation));
  }
  return plan;
}

}  // namespace kvasir::load
