#include "engine/sampling_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace kvasir::engine {
namespace {

Error bad_input(std::string message) { return Error{ErrorCode::bad_input, std::move(message)}; }

Error out_of_range(std::string_view key, double value, std::string_view range) {
  return bad_input(fmt::format("{} is {}, valid: {}", key, value, range));
}

// The comparison is written so that NaN fails it.
Status in_range(std::string_view key, float value, float low, float high) {
  if (value >= low && value <= high) return ok_status();
  return out_of_range(key, static_cast<double>(value), fmt::format("{} to {}", low, high));
}

Status at_most(std::string_view key, std::size_t count, std::size_t most) {
  if (count <= most) return ok_status();
  return bad_input(fmt::format("{} has {} entries, valid: at most {}", key, count, most));
}

Status validate_biases(const std::vector<LogitBias>& biases) {
  KV_TRY(at_most("logit_bias", biases.size(), kMaxLogitBiases));
  std::vector<TokenId> tokens;
  for (const LogitBias& b : biases) {
    KV_TRY(in_range(fmt::format("logit_bias of token {}", b.token), b.bias, -kMaxLogitBias, kMaxLogitBias));
    tokens.push_back(b.token);
  }
  std::ranges::sort(tokens);
  const auto twice = std::ranges::adjacent_find(tokens);
  if (twice != tokens.end()) return bad_input(fmt::format("logit_bias names token {} twice, valid: once each", *twice));
  return ok_status();
}

Status validate_bad_words(const std::vector<std::vector<TokenId>>& words) {
  KV_TRY(at_most("bad_words", words.size(), kMaxBadWords));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i].size() > kMaxBadWordTokens) {
      return bad_input(
          fmt::format("bad_words {} has {} tokens, valid: 1 to {} each", i, words[i].size(), kMaxBadWordTokens));
    }
  }
  return ok_status();
}

Status in_vocabulary(std::string_view key, TokenId token, std::uint32_t vocabulary) {
  if (token >= 0 && static_cast<std::uint32_t>(token) < vocabulary) return ok_status();
  return bad_input(fmt::format("{} has token {}, valid: 0 to {} (the vocabulary)", key, token, vocabulary - 1));
}

Status all_in_vocabulary(std::string_view key, std::span<const TokenId> tokens, std::uint32_t vocabulary) {
  for (const TokenId token : tokens) KV_TRY(in_vocabulary(key, token, vocabulary));
  return ok_status();
}

Status leaves_something(std::span<const TokenId> allowed, const std::vector<std::vector<TokenId>>& bad_words) {
  std::vector<TokenId> banned;
  for (const std::vector<TokenId>& word : bad_words) {
    if (word.size() == 1) banned.push_back(word[0]);
  }
  std::ranges::sort(banned);
  const auto is_banned = [&banned](TokenId token) { return std::ranges::binary_search(banned, token); };
  if (allowed.empty() || !std::ranges::all_of(allowed, is_banned)) return ok_status();
  return bad_input("allowed_token_ids has only tokens that bad_words forbids, valid: at least one other");
}

}  // namespace

Status validate(const SamplingParams& params) {
  if (!(params.temperature >= 0 && params.temperature <= kMaxTemperature)) {
    return out_of_range("temperature", static_cast<double>(params.temperature),
                        fmt::format("0 (greedy) to {}", kMaxTemperature));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return out_of_range("top_p", static_cast<double>(params.top_p), "above 0, up to 1 (all)");
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return out_of_range("min_p", static_cast<double>(params.min_p), "0 (all) to 1");
  }
  if (params.logprobs < -1 || params.logprobs > kMaxTopLogprobs) {
    return out_of_range("logprobs", params.logprobs,
                        fmt::format("-1 (none), or 0 to {} alternatives", kMaxTopLogprobs));
  }
  KV_TRY(in_range("presence_penalty", params.presence_penalty, -kMaxPenalty, kMaxPenalty));
  KV_TRY(in_range("frequency_penalty", params.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  KV_TRY(in_range("repetition_penalty", params.repetition_penalty, kMinRepetitionPenalty, kMaxRepetitionPenalty));
  KV_TRY(validate_biases(params.logit_bias));
  KV_TRY(at_most("stop_token_ids", params.stop_token_ids.size(), kMaxStopTokens));
  return validate_bad_words(params.bad_words);
}

Status validate_tokens(const SamplingParams& params, std::uint32_t vocabulary) {
  for (const LogitBias& b : params.logit_bias) KV_TRY(in_vocabulary("logit_bias", b.token, vocabulary));
  KV_TRY(all_in_vocabulary("allowed_token_ids", params.allowed_token_ids, vocabulary));
  KV_TRY(all_in_vocabulary("stop_token_ids", params.stop_token_ids, vocabulary));
  for (const std::vector<TokenId>& word : params.bad_words) KV_TRY(all_in_vocabulary("bad_words", word, vocabulary));
  // Beyond the vocabulary an entry repeats another: a list that long is a mistake, and would cost work in every step.
  KV_TRY(at_most("allowed_token_ids", params.allowed_token_ids.size(), vocabulary));
  return leaves_something(params.allowed_token_ids, params.bad_words);
}

}  // namespace kvasir::engine
