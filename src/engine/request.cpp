#include "engine/request.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sched/queue_policy.hpp"
#include "text/utf8.hpp"

namespace kvasir::engine {

namespace {

bool draws_or_rules(const SamplingParams& s) {
  return !s.greedy() || s.presence_penalty != 0 || s.frequency_penalty != 0 || s.repetition_penalty != 1 ||
         s.min_tokens > 0 || !s.logit_bias.empty() || !s.allowed_token_ids.empty() || !s.bad_words.empty();
}

Status validate_beam(const GenerateRequest& request) {
  const BeamParams& beam = request.beam;
  if (beam.width == 0) return ok_status();
  if (beam.width > kMaxBeams)
    return Error{ErrorCode::bad_input, fmt::format("beam width is {}, valid: 1 to {}", beam.width, kMaxBeams)};
  if (beam.returned < 1 || beam.returned > beam.width)
    return Error{ErrorCode::bad_input, fmt::format("{} answers of a beam search are asked for, valid: 1 to its {} beams",
                                                   beam.returned, beam.width)};
  if (!(std::abs(beam.length_penalty) <= kMaxLengthPenalty))
    return Error{ErrorCode::bad_input, fmt::format("length_penalty is {}, valid: -{} to {}", beam.length_penalty,
                                                   kMaxLengthPenalty, kMaxLengthPenalty)};
  if (draws_or_rules(request.sampling))
    return Error{ErrorCode::bad_input, "a beam search takes the likeliest tokens as they are; valid: temperature 0, no "
                                       "penalties, bias, bans, lists or min_tokens"};
  if (request.sampling.logprobs > 0 || request.prompt_logprobs >= 0 || request.prompt_logits || !request.stop.empty())
    return Error{ErrorCode::bad_input, "a beam search tells the logprobs of its tokens alone and ends with end tokens; valid: "
                                       "no alternatives, no prompt logprobs, no stop strings"};
  return ok_status();
}

}  // namespace

Status validate(const GenerateRequest& request) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::bad_input, "prompt has 0 tokens, valid: at least 1"};
  }
  if (request.max_tokens == 0u && !request.prompt_logits && request.prompt_logprobs < 0) {
    return Error{ErrorCode::bad_input,
                 "max_tokens is 0, valid: at least 1 (0 only with prompt_logits or prompt_logprobs)"};
  }
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > kMaxTopLogprobs) {
    return Error{ErrorCode::bad_input, fmt::format("prompt_logprobs is {}, valid: -1 (none), or 0 to {} alternatives",
                                                   request.prompt_logprobs, kMaxTopLogprobs)};
  }
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens) {
    return Error{ErrorCode::bad_input, fmt::format("min_tokens is {}, valid: 0 to max_tokens ({})",
                                                   request.sampling.min_tokens, *request.max_tokens)};
  }
  if (request.stop.size() > kMaxStopStrings) {
    return Error{ErrorCode::bad_input,
                 fmt::format("stop has {} strings, valid: at most {}", request.stop.size(), kMaxStopStrings)};
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      return Error{ErrorCode::bad_input,
                   fmt::format("stop has a string of {} bytes, valid: 1 to {} each", stop.size(), kMaxStopBytes)};
    }
    if (text::first_invalid_utf8(stop)) {
      return Error{ErrorCode::bad_input, "stop has a string that is not valid UTF-8, valid: UTF-8 text"};
    }
  }
  KV_TRY(validate_beam(request));
  KV_TRY(sched::validate_priority(request.priority));
  return validate(request.sampling);
}

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::none: return "";
    case FinishReason::stop: return "stop";
    case FinishReason::length: return "length";
    case FinishReason::error: return "error";
  }
  return "";
}

}  // namespace kvasir::engine
