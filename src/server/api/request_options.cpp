#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <limits>

#include "server/api/request_parts.hpp"

namespace kvasir::server::api {
namespace {

std::uint32_t count_of(const Json& body, std::string_view name, std::uint32_t standard) {
  const Json* value = member(body, name);
  return value == nullptr ? standard : static_cast<std::uint32_t>(integer_of(*value));
}

std::vector<std::string> words_of(const Json& body, std::string_view name) {
  const Json* value = member(body, name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  return value->get<std::vector<std::string>>();
}

TokenIds tokens_of(const Json& body, std::string_view name) {
  const Json* value = member(body, name);
  return value == nullptr ? TokenIds() : read_tokens(*value);
}

void read_sampling(const Json& body, RequestOptions& out) {
  out.temperature = number_of(body, "temperature", 1);
  out.top_p = number_of(body, "top_p", 1);
  out.min_p = number_of(body, "min_p", 0);
  if (const Json* top_k = member(body, "top_k")) {
    out.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(0, integer_of(*top_k)));
  }
  out.presence_penalty = number_of(body, "presence_penalty", 0);
  out.frequency_penalty = number_of(body, "frequency_penalty", 0);
  out.repetition_penalty = number_of(body, "repetition_penalty", 1);
  out.allowed_token_ids = tokens_of(body, "allowed_token_ids");
  out.bad_words = words_of(body, "bad_words");
  if (const Json* seed = member(body, "seed")) out.seed = static_cast<std::uint64_t>(integer_of(*seed));
}

// Keys were checked to be token ids, but "7" and "07" are one token: refused like any other contradiction.
ApiStatus read_logit_bias(const Json& body, RequestOptions& out) {
  const Json* biases = member(body, "logit_bias");
  if (biases == nullptr) return api_ok();
  for (const auto& [key, bias] : biases->items()) {
    TokenId token = -1;
    std::from_chars(key.data(), key.data() + key.size(), token);
    out.logit_bias.push_back({token, bias.get<float>()});
  }
  const auto by_token = [](const LogitBias& a, const LogitBias& b) { return a.token < b.token; };
  std::sort(out.logit_bias.begin(), out.logit_bias.end(), by_token);
  const auto twice = std::adjacent_find(out.logit_bias.begin(), out.logit_bias.end(),
                                        [](const LogitBias& a, const LogitBias& b) { return a.token == b.token; });
  if (twice == out.logit_bias.end()) return api_ok();
  return bad_request("conflicting_parameters", "logit_bias",
                     fmt::format("logit_bias names token {} twice; valid: once", twice->token));
}

// An absent limit stays absent. Zero is left to the routes.
ApiStatus read_limits(const Json& body, RequestOptions& out) {
  const Json* limit = member(body, "max_tokens");
  if (const Json* newer = member(body, "max_completion_tokens")) {
    if (limit != nullptr && integer_of(*limit) != integer_of(*newer)) {
      return bad_request(
          "conflicting_parameters", "max_completion_tokens",
          fmt::format("max_completion_tokens is {} and max_tokens is {}; valid: one of them, or both equal",
                      integer_of(*newer), integer_of(*limit)));
    }
    limit = newer;
  }
  if (limit != nullptr) out.max_tokens = static_cast<std::uint32_t>(integer_of(*limit));
  out.min_tokens = count_of(body, "min_tokens", 0);
  if (out.max_tokens && out.min_tokens > *out.max_tokens) {
    return bad_request("conflicting_parameters", "min_tokens",
                       fmt::format("min_tokens is {} and max_tokens is {}; valid: min_tokens up to max_tokens",
                                   out.min_tokens, *out.max_tokens));
  }
  return api_ok();
}

ApiStatus read_ends(const Json& body, RequestOptions& out) {
  out.stop = words_of(body, "stop");
  out.stop_token_ids = tokens_of(body, "stop_token_ids");
  out.include_stop = flag_of(body, "include_stop_str_in_output", false);
  out.ignore_eos = flag_of(body, "ignore_eos", false);
  out.special_text = !flag_of(body, "skip_special_tokens", true);
  const Json* keep = member(body, "truncate_prompt_tokens");
  if (keep == nullptr) return api_ok();
  if (integer_of(*keep) == 0) return invalid_value("truncate_prompt_tokens", "0", "-1, or at least 1");
  out.keep_prompt_tokens =
      integer_of(*keep) < 0 ? std::numeric_limits<std::uint32_t>::max() : static_cast<std::uint32_t>(integer_of(*keep));
  return api_ok();
}

// The server's setting is what it can afford: a request may ask for fewer chunks, not for more.
ApiStatus read_stream(const Json& body, const ModelFacts& facts, RequestOptions& out) {
  out.stream = flag_of(body, "stream", false);
  out.stream_interval = std::clamp(count_of(body, "stream_interval", 1), facts.stream_interval, kMaxStreamInterval);
  const Json* options = member(body, "stream_options");
  if (options == nullptr) return api_ok();
  if (!out.stream) {
    return bad_request(
        "conflicting_parameters", "stream_options",
        fmt::format("stream_options is {} and stream is false; valid: stream_options only with stream: true",
                    quoted(*options)));
  }
  out.include_usage = flag_of(*options, "include_usage", false);
  out.continuous_usage = flag_of(*options, "continuous_usage_stats", false);
  return api_ok();
}

ApiStatus read_prompt_logprobs(const Json& body, RequestOptions& out) {
  const Json* value = member(body, "prompt_logprobs");
  if (value == nullptr) return api_ok();
  out.prompt_logprobs = static_cast<std::int32_t>(integer_of(*value));
  if (!out.stream) return api_ok();
  return bad_request("conflicting_parameters", "prompt_logprobs",
                     fmt::format("prompt_logprobs is {} and stream is true; valid: prompt_logprobs without stream",
                                 out.prompt_logprobs));
}

ApiStatus read_identity(const Json& body, const ModelFacts& facts, RequestOptions& out) {
  out.request_id = text_of(body, "request_id");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ':';
  };
  // It goes into headers and log lines.
  if (!std::all_of(out.request_id.begin(), out.request_id.end(), plain)) {
    return invalid_value("request_id", quoted(Json(out.request_id)), "letters, digits, '_', '-', '.' and ':'");
  }
  out.cache_salt = text_of(body, "cache_salt");
  if (const Json* priority = member(body, "priority")) out.priority = static_cast<std::int32_t>(integer_of(*priority));
  if (out.priority == 0 || facts.priority_scheduling) return api_ok();
  return bad_request(
      "unsupported_value", "priority",
      fmt::format("priority is {} and this server schedules first come, first served; valid: 0, or a server "
                  "started with --scheduling-policy priority",
                  out.priority));
}

}  // namespace

TokenIds read_tokens(const Json& list) { return list.get<TokenIds>(); }

ApiResult<std::string> check_model(std::string_view asked, const ModelFacts& facts) {
  if (asked.empty()) return facts.names.front();
  const auto found = std::find(facts.names.begin(), facts.names.end(), asked);
  if (found == facts.names.end()) return model_not_found(asked, facts.names);
  return *found;
}

ApiResult<Warnings> check_body(const Json& body, Route route, const ModelFacts& facts) {
  // The model first: a client of another model's fields is helped by its name alone.
  if (const Json* model = member(body, "model"); model != nullptr && model->is_string() && !model->empty()) {
    KV_ASSIGN(const std::string name, check_model(model->get_ref<const std::string&>(), facts));
  }
  return check_fields(body, {route, facts.tokenizer->vocab_size(), facts.strict});
}

ApiResult<RequestOptions> read_options(const Json& body, const ModelFacts& facts) {
  RequestOptions out;
  KV_ASSIGN(out.model, check_model(text_of(body, "model"), facts));
  read_sampling(body, out);
  KV_TRY(read_logit_bias(body, out));
  KV_TRY(read_limits(body, out));
  KV_TRY(read_ends(body, out));
  KV_TRY(read_stream(body, facts, out));
  KV_TRY(read_prompt_logprobs(body, out));
  KV_TRY(read_identity(body, facts, out));
  out.n = count_of(body, "n", 1);
  out.return_token_ids = flag_of(body, "return_token_ids", false);
  return out;
}

}  // namespace kvasir::server::api
