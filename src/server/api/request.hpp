// Requests as plain data, read from JSON. Nothing is tokenized here (prompt.hpp does that), so that a server can decide
// about a request before it pays for its text.
//
// Thread rule: values and pure functions; any thread.
// Invariants: what parse_* returns satisfies every row of the field table and every rule between fields: both limits
// only if they agree, top_logprobs only with logprobs, stream_options only with stream, min_tokens within the limit,
// priority only where the scheduler has it, prompt log probabilities only without stream (echo aside), a beam search only
// with what it heeds, n <= best_of. Errors: 400
// naming the field; 404 for a model that is not served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "engine/request.hpp"
#include "server/api/field_check.hpp"
#include "server/api/model_facts.hpp"
#include "text/chat_template.hpp"

namespace kvasir::server::api {

struct LogitBias {
  TokenId token = -1;
  float bias = 0;
};

// What chat and completions have in common. Names and meanings as in engine::SamplingParams and
// engine::GenerateRequest.
struct RequestOptions {
  std::string model;  // the served name that was asked for

  float temperature = 1;
  std::uint32_t top_k = 0;  // 0 = all
  float top_p = 1;
  float min_p = 0;
  float presence_penalty = 0, frequency_penalty = 0, repetition_penalty = 1;
  std::vector<LogitBias> logit_bias;       // ascending, tokens distinct
  std::vector<TokenId> allowed_token_ids;  // empty = all
  std::vector<std::string> bad_words;
  std::optional<std::uint64_t> seed;  // none = the server draws one

  std::optional<std::uint32_t> max_tokens;  // none = the server's default
  std::uint32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool include_stop = false;
  bool ignore_eos = false;
  bool special_text = false;                        // control tokens show as text
  std::optional<std::uint32_t> keep_prompt_tokens;  // cut the prompt to its last tokens; the maximum = what fits

  std::uint32_t n = 1;                // answers to each prompt
  std::uint32_t samples = 1;          // generated for each prompt, n of them come back: best_of, or n
  engine::BeamParams beam;            // width > 0: a beam search, not samples; `returned` is n
  std::int32_t logprobs = -1;         // -1 none; n >= 0: the token's own and those of the n likeliest
  std::int32_t prompt_logprobs = -1;  // the same for the prompt's tokens

  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool continuous_usage = false;  // usage in every chunk
  bool return_token_ids = false;
  std::uint32_t stream_interval = 1;  // tokens of a chunk, 1 to kMaxStreamInterval

  std::int32_t priority = 0;  // lower = earlier
  std::string request_id;     // "" = the server makes one
  std::string cache_salt;

  bool searches() const { return beam.width > 0; }
  // Of each prompt: engine requests, and sequences that the engine holds for them.
  std::uint32_t streams() const { return searches() ? 1 : samples; }
  std::uint32_t sequences() const { return searches() ? beam.width : samples; }
};

// How messages become a prompt.
struct ChatPrompt {
  std::vector<text::ChatMessage> messages;
  bool add_generation_prompt = true;
  bool continue_final_message = false;       // the last message is the beginning of the answer
  std::string chat_template;                 // "" = the model's
  Json template_variables = Json::object();  // scalars
};

struct ChatRequest {
  RequestOptions options;
  ChatPrompt prompt;
  Warnings warnings;
};

using TokenIds = std::vector<TokenId>;

struct CompletionRequest {
  RequestOptions options;
  std::vector<std::variant<std::string, TokenIds>> prompts;  // at least one
  bool echo = false;
  bool add_special = true;    // of texts: BOS where the model wants it
  bool parse_special = true;  // of texts: control tokens by their text
  Warnings warnings;
};

struct TokenizeRequest {
  std::variant<std::string, ChatPrompt> prompt;
  bool add_special = true;
  bool parse_special = true;
  bool return_token_strs = false;
  Warnings warnings;
};

struct DetokenizeRequest {
  TokenIds tokens;
  Warnings warnings;
};

ApiResult<ChatRequest> parse_chat(const Json& body, const ModelFacts& facts);
ApiResult<CompletionRequest> parse_completion(const Json& body, const ModelFacts& facts);
ApiResult<TokenizeRequest> parse_tokenize(const Json& body, const ModelFacts& facts);
ApiResult<DetokenizeRequest> parse_detokenize(const Json& body, const ModelFacts& facts);

// "" and absent mean the first name. Errors: 404 model_not_found, listing what is served.
ApiResult<std::string> check_model(std::string_view asked, const ModelFacts& facts);

}  // namespace kvasir::server::api
