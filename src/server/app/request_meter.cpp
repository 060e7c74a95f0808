#include "server/app/request_meter.hpp"

#include <algorithm>

#include "platform/clock.hpp"

namespace kvasir::server {
namespace {

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return from_ns == 0 || to_ns <= from_ns ? 0 : platform::seconds_between(from_ns, to_ns);
}

// How bad an end is: a request with several streams is told by its worst.
int badness(EndReason reason) {
  switch (reason) {
    case EndReason::stop:
      return 0;
    case EndReason::length:
      return 1;
    case EndReason::cancelled:
      return 2;
    case EndReason::shutdown:
      return 3;
    case EndReason::error:
      break;
  }
  return 4;
}

FinishReason metric_reason(EndReason reason) {
  switch (reason) {
    case EndReason::stop:
      return FinishReason::stop;
    case EndReason::length:
      return FinishReason::length;
    case EndReason::cancelled:
    case EndReason::shutdown:
      return FinishReason::abort;
    case EndReason::error:
      break;
  }
  return FinishReason::error;
}

}  // namespace

RequestMeter::RequestMeter(MetricsFeed& feed, const RequestShape& shape)
    : feed_(feed),
      shape_(shape),
      prompts_(shape.prompts),
      last_ns_(shape.prompts * shape.streams),
      admitted_(shape.prompts * shape.streams) {
  for (Prompt& prompt : prompts_) prompt.open = shape.streams;
}

double RequestMeter::since_arrival(std::uint64_t ns) const { return seconds(shape_.arrived_ns, ns); }

void RequestMeter::admit(std::size_t index, const StreamTimes& times, std::uint32_t prompt_tokens) {
  if (admitted_[index] || times.scheduled_ns == 0) return;
  admitted_[index] = true;
  feed_.admitted(prompt_tokens);
  if (index == 0) totals_.queue_s = seconds(times.queued_ns, times.scheduled_ns);
}

void RequestMeter::on_token(std::size_t index, const TokenEvent& event) {
  admit(index, event.times, event.prompt_tokens);
  if (event.prompt) return;
  Prompt& prompt = prompts_[index / shape_.streams];
  if (!prompt.first_seen) {
    prompt.first_seen = true;
    feed_.first_token(since_arrival(event.at_ns));
  }
  if (totals_.first_token_s == 0) totals_.first_token_s = since_arrival(event.at_ns);
  // The answers of a beam search come with one step: no time lies between their tokens.
  if (last_ns_[index] != 0 && last_ns_[index] != event.at_ns) feed_.inter_token(seconds(last_ns_[index], event.at_ns));
  last_ns_[index] = event.at_ns;
}

void RequestMeter::on_end(std::size_t index, const EndEvent& event) {
  admit(index, event.times, event.prompt_tokens);
  if (event.reason == EndReason::cancelled) {
    const bool prefilling = event.times.scheduled_ns != 0;
    feed_.cancelled(event.times.first_token_ns != 0 ? "decode" : prefilling ? "prefill" : "queued");
  }
  if (index % shape_.streams == 0) totals_.prompt_tokens += event.prompt_tokens;
  totals_.completion_tokens += event.completion_tokens;
  if (badness(event.reason) > badness(totals_.reason)) totals_.reason = event.reason;
  finish(prompts_[index / shape_.streams], event);
}

void RequestMeter::finish(Prompt& prompt, const EndEvent& event) {
  FinishedSample& sample = prompt.sample;
  const StreamTimes& times = event.times;
  sample.generated_tokens += event.completion_tokens;
  if (badness(event.reason) > prompt.badness) {
    prompt.badness = badness(event.reason);
    sample.reason = metric_reason(event.reason);
  }
  const std::uint64_t decided_ns = times.scheduled_ns != 0 ? times.scheduled_ns : times.end_ns;
  sample.queue = std::max(sample.queue, seconds(times.queued_ns, decided_ns));
  const std::uint64_t prefilled_ns = times.first_token_ns != 0 ? times.first_token_ns : times.end_ns;
  sample.prefill = std::max(sample.prefill, seconds(times.scheduled_ns, prefilled_ns));
  sample.end_to_end = std::max(sample.end_to_end, since_arrival(times.end_ns));
  if (event.completion_tokens >= sample.longest_choice_tokens) {
    sample.longest_choice_tokens = event.completion_tokens;
    sample.decode = seconds(times.first_token_ns, times.end_ns);
  }
  if (--prompt.open > 0) return;
  sample.prompt_tokens = event.prompt_tokens;
  sample.computed_prompt_tokens = times.first_token_ns != 0 ? event.prompt_tokens : 0;
  sample.max_tokens = shape_.max_tokens;
  sample.n = shape_.n;
  feed_.flush();
  feed_.finished(sample);
}

}  // namespace kvasir::server
