#include "server/api/logprobs.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/check.hpp"
#include "text/utf8.hpp"

namespace kvasir::server::api {
namespace {

Json byte_list(std::string_view bytes) {
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Json chat_entry(const text::Tokenizer& tokenizer, TokenId token, float logprob) {
  return {{"token", token_name(tokenizer, token)},
          {"logprob", logprob_value(logprob)},
          {"bytes", byte_list(token_bytes(tokenizer, token))}};
}

Json prompt_entry(const text::Tokenizer& tokenizer, TokenId token, float logprob, Json rank) {
  return {
      {"logprob", logprob_value(logprob)}, {"rank", std::move(rank)}, {"decoded_token", token_name(tokenizer, token)}};
}

}  // namespace

std::string_view token_bytes(const text::Tokenizer& tokenizer, TokenId id) {
  return tokenizer.contains(id) ? tokenizer.piece(id) : std::string_view();
}

std::string token_name(const text::Tokenizer& tokenizer, TokenId id) {
  const std::string_view bytes = token_bytes(tokenizer, id);
  if (!text::first_invalid_utf8(bytes)) return std::string(bytes);
  std::string out = "bytes:";
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Written so that NaN becomes the floor too.
double logprob_value(float logprob) { return logprob > kLogprobFloor ? static_cast<double>(logprob) : kLogprobFloor; }

void CharacterCount::push(std::string_view bytes) {
  open_ += bytes;
  std::size_t at = 0;
  while (at < open_.size()) {
    const text::Utf8Step step = text::utf8_step(open_, at);
    if (step.kind == text::Utf8Kind::cut_off) break;
    ++complete_;  // an ill-formed part shows as one replacement character
    at += step.length;
  }
  open_.erase(0, at);
}

Json chat_logprob(const text::Tokenizer& tokenizer, const ChoiceEvent& event) {
  Json out = chat_entry(tokenizer, event.token, event.logprob);
  Json top = Json::array();
  for (const engine::TokenLogprob& one : event.top_logprobs)
    top.push_back(chat_entry(tokenizer, one.token, one.logprob));
  out["top_logprobs"] = std::move(top);
  return out;
}

CompletionLogprobs::CompletionLogprobs(const text::Tokenizer& tokenizer, bool special_text)
    : tokenizer_(&tokenizer), special_text_(special_text) {}

void CompletionLogprobs::add_entry(TokenId token, bool shown, bool has, float logprob,
                                   std::span<const engine::TokenLogprob> top) {
  offsets_.push_back(characters_.complete());
  if (shown) characters_.push(token_bytes(*tokenizer_, token));
  tokens_.push_back(token_name(*tokenizer_, token));
  logprobs_.push_back(has ? Json(logprob_value(logprob)) : Json(nullptr));
  if (!has) {
    tops_.push_back(nullptr);
    return;
  }
  Json named = Json::object();  // of tokens with one name the likeliest stays
  for (const engine::TokenLogprob& one : top)
    named.emplace(token_name(*tokenizer_, one.token), logprob_value(one.logprob));
  named.emplace(token_name(*tokenizer_, token), logprob_value(logprob));
  tops_.push_back(std::move(named));
}

void CompletionLogprobs::add_prompt(std::span<const TokenId> ids, std::uint32_t hidden,
                                    std::span<const PositionLogprobs> logprobs) {
  KV_CHECK(ids.size() == logprobs.size(), "one entry of log probabilities for each token of the prompt");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    add_entry(ids[i], i >= hidden, logprobs[i].has_logprob, logprobs[i].logprob, logprobs[i].top);
  }
}

void CompletionLogprobs::add(const ChoiceEvent& event) {
  const bool control = tokenizer_->contains(event.token) && tokenizer_->is_control(event.token);
  add_entry(event.token, special_text_ || !control, event.has_logprob, event.logprob, event.top_logprobs);
}

Json CompletionLogprobs::take() {
  Json out = {{"text_offset", std::move(offsets_)},
              {"token_logprobs", std::move(logprobs_)},
              {"tokens", std::move(tokens_)},
              {"top_logprobs", std::move(tops_)}};
  for (Json* list : {&offsets_, &logprobs_, &tokens_, &tops_}) *list = Json::array();
  return out;
}

Json prompt_logprobs(const text::Tokenizer& tokenizer, std::span<const TokenId> ids,
                     std::span<const PositionLogprobs> logprobs) {
  KV_CHECK(ids.size() == logprobs.size(), "one entry of log probabilities for each token of the prompt");
  Json out = Json::array();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!logprobs[i].has_logprob) {
      out.push_back(nullptr);
      continue;
    }
    Json position = Json::object();
    std::uint32_t rank = 0;
    for (const engine::TokenLogprob& one : logprobs[i].top) {
      position.emplace(std::to_string(one.token), prompt_entry(tokenizer, one.token, one.logprob, ++rank));
    }
    position.emplace(std::to_string(ids[i]), prompt_entry(tokenizer, ids[i], logprobs[i].logprob, nullptr));
    out.push_back(std::move(position));
  }
  return out;
}

}  // namespace kvasir::server::api
