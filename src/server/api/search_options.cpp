// best_of and the beam search: read, and held against everything else that was asked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/api/request_parts.hpp"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kConflict = "conflicting_parameters";

ApiError only_with_beams(std::string_view field, const Json& value, std::string_view otherwise) {
  return bad_request(kConflict, field,
                     fmt::format("{} is {} and use_beam_search is false; valid: {}, or use_beam_search: true", field,
                                 quoted(value), otherwise));
}

ApiError not_with_beams(std::string_view field, const Json& value, std::string_view valid) {
  return bad_request(kConflict, field, fmt::format("{} is {} and use_beam_search is true; valid: {} with use_beam_search",
                                                   field, quoted(value), valid));
}

engine::EarlyStopping early_stopping_of(const Json& body) {
  const Json* value = member(body, "early_stopping");
  if (value == nullptr || *value == false) return engine::EarlyStopping::off;
  return *value == true ? engine::EarlyStopping::on : engine::EarlyStopping::never;
}

// Samples: best_of chooses among them, once all are there.
ApiStatus check_samples(const Json& body, Route route, const RequestOptions& options) {
  if (options.beam.length_penalty != 1) return only_with_beams("length_penalty", body["length_penalty"], "1");
  if (options.beam.early_stopping != engine::EarlyStopping::off) {
    return only_with_beams("early_stopping", body["early_stopping"], "false");
  }
  if (options.samples == options.n) return api_ok();
  if (route == Route::chat) return only_with_beams("best_of", body["best_of"], "the same as n");
  if (!options.stream) return api_ok();
  return bad_request(kConflict, "best_of",
                     fmt::format("best_of is {}, n is {} and stream is true; valid: best_of above n without stream",
                                 options.samples, options.n));
}

// What a search does not heed: it follows the model's own probabilities to an end token or the limit.
ApiStatus check_heeded(const Json& body, Route route, const RequestOptions& options) {
  struct Unheeded {
    std::string_view field;
    bool asked;
    std::string_view valid;
  };
  const std::string_view alternatives = route == Route::chat ? "top_logprobs" : "logprobs";
  const Json* temperature = member(body, "temperature");
  const std::array unheeded = {
      Unheeded{"temperature", temperature != nullptr && *temperature != 0, "0"},
      Unheeded{"presence_penalty", options.presence_penalty != 0, "0"},
      Unheeded{"frequency_penalty", options.frequency_penalty != 0, "0"},
      Unheeded{"repetition_penalty", options.repetition_penalty != 1, "1"},
      Unheeded{"logit_bias", !options.logit_bias.empty(), "no entries"},
      Unheeded{"allowed_token_ids", !options.allowed_token_ids.empty(), "all tokens (leave it out)"},
      Unheeded{"bad_words", !options.bad_words.empty(), "no entries"},
      Unheeded{"min_tokens", options.min_tokens != 0, "0"},
      Unheeded{"stop", !options.stop.empty(), "stop_token_ids"},
      Unheeded{alternatives, options.logprobs > 0, "0"},
      Unheeded{"prompt_logprobs", member(body, "prompt_logprobs") != nullptr, "none (leave it out)"},
      Unheeded{"echo", options.prompt_logprobs >= 0, "echo without logprobs"},
      Unheeded{"max_tokens", options.max_tokens == 0u, "at least 1"},
  };
  const auto found = std::ranges::find_if(unheeded, &Unheeded::asked);
  if (found == unheeded.end()) return api_ok();
  return not_with_beams(found->field, body[found->field], found->valid);
}

ApiStatus begin_search(const Json& body, Route route, RequestOptions& out) {
  KV_TRY(check_heeded(body, route, out));
  const std::uint32_t width = out.samples;
  if (width > engine::kMaxBeams) {
    return invalid_value(width == out.n ? "n" : "best_of", fmt::format("{} with use_beam_search", width),
                         fmt::format("up to {} beams", engine::kMaxBeams));
  }
  out.temperature = 0;
  out.samples = out.n;
  out.beam.width = width;
  out.beam.returned = out.n;
  // All of a stream's tokens come at once: no more chunks than need be.
  out.stream_interval = kMaxStreamInterval;
  return api_ok();
}

}  // namespace

ApiStatus read_search(const Json& body, Route route, RequestOptions& out) {
  const Json* best_of = member(body, "best_of");
  out.samples = best_of == nullptr ? out.n : static_cast<std::uint32_t>(integer_of(*best_of));
  out.beam.length_penalty = number_of(body, "length_penalty", 1);
  out.beam.early_stopping = early_stopping_of(body);
  if (out.samples < out.n) {
    return bad_request(kConflict, "best_of",
                       fmt::format("best_of is {} and n is {}; valid: best_of at least n", out.samples, out.n));
  }
  return flag_of(body, "use_beam_search", false) ? begin_search(body, route, out) : check_samples(body, route, out);
}

}  // namespace kvasir::server::api
